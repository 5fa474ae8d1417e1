"""How far results are from what exact arithmetic gives, and how far rounding alone may take them."""
