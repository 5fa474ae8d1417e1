"""Remembers that a compiler failed for a C++ file, in a file next to the compiled ones."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def remember(built: Path, compiler: str, reason: str) -> None:
    """Note why `built` could not be made.

    compiler -- path of the compiler; another one at this path is tried anew
    """
    with suppress(OSError):
        _file(built).write_text(f"{_identity(compiler)}\n{reason}")


def earlier(built: Path, compiler: str) -> str:
    """Why this compiler failed to make `built` before, and how to try once more; empty: it did not."""
    file = _file(built)
    try:
        failed, _, reason = file.read_text().partition("\n")
    except (OSError, ValueError):
        return ""
    if failed != _identity(compiler):
        return ""
    return f"{reason} (an earlier attempt; delete {file} for another one)"


def _file(built: Path) -> Path:
    return built.with_name(f"{built.name}.failed")


def _identity(compiler: str) -> str:
    path = Path(compiler).resolve()
    facts = path.stat()
    return f"{path} {facts.st_size} {facts.st_mtime_ns}"
