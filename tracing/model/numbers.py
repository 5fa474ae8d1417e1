"""Numbers of tensors as text."""

from __future__ import annotations


def number_text(value: complex) -> str:
    """An element of a tensor for people: `True` and `17179869192` in full, other numbers in 9 digits."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"
