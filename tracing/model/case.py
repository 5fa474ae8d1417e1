"""A case, and what it builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Workload:
    """The function that a case runs: `fn(*args, **kwargs)`, and its gradients if `backward`."""

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A file with `build(device) -> Workload`."""

    name: str
    path: Path
    description: str
    build: Callable[[str], Workload]
