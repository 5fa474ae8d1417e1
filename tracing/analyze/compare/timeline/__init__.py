"""One process in launch order: each launch, and which writes produced the memory that it reads."""
