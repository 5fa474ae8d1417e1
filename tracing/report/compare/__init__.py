"""The comparison of two runs, as text and JSON."""
