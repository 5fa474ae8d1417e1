"""Compiler passes, as text and JSON."""
