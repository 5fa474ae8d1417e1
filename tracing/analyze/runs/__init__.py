"""What one run, or two as wholes, gave, covered and left out."""
