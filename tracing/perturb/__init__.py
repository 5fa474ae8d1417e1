"""Deliberately change what no correct program depends on: order, contents of new memory, autotuning."""
