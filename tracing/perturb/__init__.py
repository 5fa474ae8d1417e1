"""Changes, on purpose, of what no program may rely on: order, memory contents, autotuning times."""
