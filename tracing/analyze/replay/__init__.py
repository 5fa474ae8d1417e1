"""Plans and verdicts of launches that are executed once more or swapped."""
