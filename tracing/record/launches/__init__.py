"""Records launches: arguments, digests, times."""
