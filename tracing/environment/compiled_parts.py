"""The environment variables that decide whether and where the recorder's C++ parts are compiled."""

from __future__ import annotations

import os
from pathlib import Path

SWITCH = "TRACING_NATIVE"


def wanted() -> bool:
    """False if the user asks for Python only, by TRACING_NATIVE=0."""
    return os.environ.get(SWITCH) != "0"


def compilers() -> list[str]:
    """The names or paths of C++ compilers to try: $CXX, or the usual ones."""
    named = os.environ.get("CXX")
    return [named] if named else ["c++", "g++", "clang++"]


def cache() -> Path:
    """The folder of the compiled parts, in $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "debug-triton" / "native"
