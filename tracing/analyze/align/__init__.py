"""Pair the launches of two processes."""
