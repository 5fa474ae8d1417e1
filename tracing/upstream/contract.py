"""Helpers for contracts: the function `contract` of each file here checks the objects that the file uses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class Broken(Exception):
    """torch or Triton lacks something that this project relies on; the text describes it."""


def require(condition: object, needed: str) -> None:
    """Raise Broken if the condition is false.

    needed -- what should be true: "the interpreter keeps bfloat16 in uint16"
    """
    if not condition:
        raise Broken(f"needed: {needed}")


def require_parameters(function: Callable[..., Any], *names: str) -> None:
    """Raise Broken if a function lacks one of these parameters, or uses another name."""
    parameters = inspect.signature(function).parameters
    missing = [name for name in names if name not in parameters]
    called = getattr(function, "__qualname__", str(function))
    require(not missing, f"{called}() with {', '.join(missing)}; it has {', '.join(parameters)}")


def require_methods(owner: type, *names: str) -> None:
    """Raise Broken if a class does not itself define one of these methods, which are replaced there."""
    missing = [name for name in names if name not in vars(owner)]
    require(not missing, f"{owner.__module__}.{owner.__qualname__} with {', '.join(missing)}")
