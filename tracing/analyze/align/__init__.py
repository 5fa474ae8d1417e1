"""Which launches of two processes belong together."""
