"""The distance of results from exact arithmetic, and the distance that rounding may cause."""
