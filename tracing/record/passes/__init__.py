"""The compiler passes of a run while it is recorded."""
