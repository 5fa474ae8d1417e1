"""Records the compiler passes of a run."""
