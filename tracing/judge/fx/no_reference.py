"""Why a value of a graph cannot be computed."""

# of a graph that does not run by itself, or not on this device
FAILURES = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError, AssertionError)


class NoReference(Exception):
    """There is no float64 reference; the text has the reason."""
