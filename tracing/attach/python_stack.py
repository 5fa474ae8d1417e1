"""Describe the Python frames that led to a compile, without those of the programs that start one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import FrameType

# packages: of this tool, of its command line, of `python -m`
STARTERS = ("tracing", "typer", "click", "runpy")


def described(frames: Iterable[FrameType]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Frames as "make_ttgir  compiler.py:337", and the number of those left out, by package."""
    owned = [(_package(frame), frame) for frame in frames]
    left_out = Counter(package for package, _ in owned if package in STARTERS)
    return tuple(_text(frame) for package, frame in owned if package not in STARTERS), dict(left_out)


def _package(frame: FrameType) -> str:
    # of tracing/__main__.py, which `python -m tracing` names __main__, the package is known only
    name = frame.f_globals.get("__package__") or frame.f_globals.get("__name__") or ""
    return str(name).partition(".")[0]


def _text(frame: FrameType) -> str:
    return f"{frame.f_code.co_name}  {frame.f_code.co_filename}:{frame.f_lineno}"
