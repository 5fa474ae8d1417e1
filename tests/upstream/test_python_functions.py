"""Names and lines of the functions that a program gives to torch."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from tracing.upstream.python_functions import name_outside_torch


def mine(graph: Any) -> None:
    """Changes nothing."""


class Mine:
    def __call__(self, graph: Any) -> None:
        """Changes nothing."""

    def method(self, graph: Any) -> None:
        """Changes nothing."""


OF_CALL = Mine.__call__.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (mine, f"mine (test_python_functions.py:{mine.__code__.co_firstlineno})"),
        (functools.partial(functools.partial(mine)), f"mine (test_python_functions.py:{OF_CALL - 5})"),
        (Mine(), f"Mine (test_python_functions.py:{OF_CALL})"),
        (Mine().method, f"Mine.method (test_python_functions.py:{OF_CALL + 3})"),
        (torch.compile, ""),
        (torch.sin, ""),
        (None, ""),
        (len, ""),
    ],
)
def test_a_function_is_named_with_its_line_unless_it_is_torchs(given: Any, name: str) -> None:
    assert name_outside_torch(given) == name
