"""The searches of a bisection, as text and JSON."""
