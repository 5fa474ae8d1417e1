"""The steps of a compiled graph's code in one call, judged."""
