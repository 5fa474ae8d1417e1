"""Writes VSCode's configuration for this machine."""
