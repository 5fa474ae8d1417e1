"""The program that runs: a case on a device from a seed, with its initial state and its results."""
