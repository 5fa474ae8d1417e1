"""Runs as tables."""
