"""The functions of Python that a program gives to torch, and their lines."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import torch

_TORCH = f"{Path(torch.__file__).parent}/"


def python_function(given: Any) -> Any:
    """The function that something callable is, or calls; None if it is not written in Python."""
    while isinstance(given, functools.partial):
        given = given.func
    given = getattr(given, "__func__", given)
    function = given if inspect.isfunction(given) else vars(type(given)).get("__call__")
    return function if inspect.isfunction(function) else None


def name_outside_torch(given: Any) -> str:
    """Its name and first line, "mine (train.py:12)"; "" for a function of torch, or none of Python."""
    function = python_function(given)
    if function is None or function.__code__.co_filename.startswith(_TORCH):
        return ""
    name = function.__qualname__.removesuffix(".__call__").rpartition("<locals>.")[2]
    return f"{name} ({Path(function.__code__.co_filename).name}:{function.__code__.co_firstlineno})"
