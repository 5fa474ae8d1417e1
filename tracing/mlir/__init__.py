"""Parse MLIR's generic text into a tree, and execute its operations.

This package does not need MLIR: a caller with a compiler prints with `-mlir-print-op-generic`, in which every
operation of every dialect has one form.
"""
