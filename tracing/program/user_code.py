"""Decides whether code is the user's own, not of Python, a package, torch, Triton or this project."""

from __future__ import annotations

import functools
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path

_PACKAGES = ("torch", "triton", "tracing")  # which may be run from their sources
_INSTALLED = ("site-packages", "dist-packages")


@functools.cache
def is_users(file: str) -> bool:
    """True if a file, as code objects name it, is a case's own, or a module of the user's."""
    if file.startswith("<"):  # frozen, or made at run time
        return False
    path = Path(file)
    if any(name in path.parts for name in _INSTALLED):
        return False
    return not any(path.is_relative_to(folder) for folder in _folders())


def imported_files() -> set[Path]:
    """The files of the user's modules that this process has imported, the program itself included."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {Path(one) for one in files if isinstance(one, str) and one.endswith(".py") and is_users(one)}


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names of globals and attributes that a function and its nested functions use."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


@functools.cache
def _folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    specs = [importlib.util.find_spec(name) for name in _PACKAGES]
    packages = [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]
    return (Path(paths["stdlib"]), Path(paths["platstdlib"]), *packages)
