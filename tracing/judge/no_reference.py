"""Why a value of a graph cannot be computed."""


class NoReference(Exception):
    """There is no float64 reference; the text has the reason."""
