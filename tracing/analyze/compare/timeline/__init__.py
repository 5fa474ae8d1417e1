"""One process in launch order: each launch, and the writes that produced the memory that it reads."""
