"""Writes what VSCode reads, for this machine."""
