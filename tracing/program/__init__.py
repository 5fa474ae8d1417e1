"""The executed program: a case on a device with a seed, its initial state and its results."""
