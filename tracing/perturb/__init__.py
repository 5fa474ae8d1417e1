"""Deliberately change what no program may rely on: order, contents of new memory, autotuning times."""
