"""What the ranks of one job did together, and which left first."""
