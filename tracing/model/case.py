"""A case, and what it builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Workload:
    """The function that a case runs: `fn(*args, **kwargs)`, and its gradients if `backward`."""

    fn: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    backward: bool = False
    mode: str | None = None  # this and the following fields are arguments of torch.compile
    dynamic: bool | None = None
    fullgraph: bool = False
    options: Mapping[str, Any] | None = None
    backend: str | Callable[..., Any] = "inductor"

    @property
    def compiling(self) -> dict[str, Any]:
        """The keyword arguments of torch.compile for `fn`, without those that equal its defaults."""
        given: dict[str, Any] = {"mode": self.mode, "dynamic": self.dynamic, "options": self.options}
        given["fullgraph"] = self.fullgraph or None
        given["backend"] = None if self.backend == "inductor" else self.backend
        return {name: value for name, value in given.items() if value is not None}

    def with_backend(self, backend: str | Callable[..., Any]) -> Workload:
        """This workload, compiled by a backend; mode and options are arguments of its own one."""
        return self if backend == self.backend else replace(self, backend=backend, mode=None, options=None)


@dataclass(frozen=True, slots=True)
class Case:
    """A file with `build(device) -> Workload`."""

    name: str
    path: Path
    description: str
    build: Callable[[str], Workload]
