"""Commands that show what a run holds."""
