"""Plans and verdicts of launches that are executed again or swapped."""
