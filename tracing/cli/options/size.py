"""Sizes in bytes as people write them: `1GB`, `512 MiB`, `1073741824`."""

from __future__ import annotations

import re

import typer

_UNITS = {"": 1} | {
    f"{prefix}{middle}b": base**power
    for power, prefix in enumerate(("", "k", "m", "g", "t"))
    for middle, base in (("", 1000), ("i", 1024))
    if prefix or not middle
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]*)")


def size(text: str | int) -> int:
    """The number of bytes of a size: `1GB` is 1,000,000,000 and `1GiB` 1,073,741,824; a number is bytes."""
    match = _SIZE.fullmatch(str(text).strip().lower())
    unit = match[2] if match else ""
    unit = unit if unit in _UNITS else f"{unit}b"  # 1G
    if match is None or unit not in _UNITS:
        raise typer.BadParameter(f"{text!r} is no size; give it as 1GB, 512MiB or in bytes")
    return int(float(match[1]) * _UNITS[unit])


def size_text(count: int) -> str:
    """A number of bytes as `size` reads it: `16GiB`; the number if no unit divides it."""
    units = ((name, bytes_) for name, bytes_ in reversed(_UNITS.items()) if bytes_ > 1)
    for name, bytes_ in units:
        if count and count % bytes_ == 0:
            return f"{count // bytes_}{name[0].upper()}{name[1:-1]}B"
    return str(count)
