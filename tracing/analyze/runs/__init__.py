"""Facts about a whole run: results, coverage, outcome."""
