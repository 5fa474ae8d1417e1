"""Builds LLVM and Triton from source for debugging; standard library only."""
