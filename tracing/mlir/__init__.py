"""MLIR's generic text as a tree: what its operations are made of, and what they compute.

Nothing here needs MLIR: whoever has a compiler prints with `-mlir-print-op-generic`, in which every operation
of every dialect has one form.
"""
