"""Find why the two launches of a pair read different bits: compare the writers of these bits in both runs."""
