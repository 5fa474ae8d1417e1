"""Why the two launches of a pair read different bits: the writers of these bits in both runs, compared."""
