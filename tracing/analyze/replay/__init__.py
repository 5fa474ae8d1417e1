"""Plan replays and swaps of launches, and interpret their results."""
