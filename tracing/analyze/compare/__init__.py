"""Finds where two runs of one case differ, and names the cause."""
