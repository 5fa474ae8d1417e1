"""Compare the ranks of one job."""
