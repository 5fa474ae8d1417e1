"""Compile below MLIR: LLVM's passes, ptxas, and their tools."""
