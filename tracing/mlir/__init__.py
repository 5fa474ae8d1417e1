"""MLIR's generic text as a tree: what its operations are made of, what they compute, and how to make it smaller.

Nothing here needs MLIR: whoever has a compiler prints with `-mlir-print-op-generic`, in which every operation of
every dialect has one form.
"""
