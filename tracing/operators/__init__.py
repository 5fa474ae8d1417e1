"""Operators outside of Triton as they are called: what they read, write and allocate."""
