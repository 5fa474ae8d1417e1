"""Intercept operators outside of Triton: the memory that they read, write and allocate."""
