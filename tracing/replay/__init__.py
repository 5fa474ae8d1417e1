"""Recorded launches executed again: by Triton's own launcher, by the interpreter, or as a given binary."""
