"""Parse MLIR's generic text into a tree, and compute what its operations compute.

Nothing here needs MLIR: whoever has a compiler prints with `-mlir-print-op-generic`, in which every operation
of every dialect has one form.
"""
