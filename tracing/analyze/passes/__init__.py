"""A kernel's compiler passes: their IR, operations, locations and tests."""
