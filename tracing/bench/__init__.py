"""Measures cases with several backends of torch.compile: compile time, latency, graphs, agreement."""
