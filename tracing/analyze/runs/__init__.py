"""Read a run as a whole: its results, its coverage, its ending."""
