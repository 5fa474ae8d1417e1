"""How far results differ: from exact arithmetic, by rounding, and between two backends (KernelDiff)."""
