"""How far results are from what exact arithmetic gives, and how far rounding may take them."""
