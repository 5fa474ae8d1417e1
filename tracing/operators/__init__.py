"""Operators outside of Triton when they are called: what they read, write and allocate."""
