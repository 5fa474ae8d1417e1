"""The memory accesses of one launch that the interpreter executes, byte by byte."""
