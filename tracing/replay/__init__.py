"""Executes recorded launches: by Triton's own launcher, by the interpreter, or as a given binary."""
