"""Commands that search for the kernel, the pass or the instruction to blame."""
