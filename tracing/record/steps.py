"""Finds the ends of a program's steps: at `tracing.step()`, or with a step of an optimizer.

From its first `tracing.step()` on, only these calls end steps. Otherwise a step ends with a step of one
optimizer, the first of the program; another one takes over if it steps twice between two steps of that one.
An optimizer whose step torch.compile compiled calls no hook, so it ends none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_active: list[StepRecorder] = []


class StepRecorder:
    """Finds the ends of the steps of one recording."""

    def __init__(self, ended: Callable[[], None]) -> None:
        """ended -- called at the end of each step"""
        self._ended = ended
        self._marked = False  # by the program
        self._leader: ref[Any] | None = None  # the optimizer whose steps end steps
        self._others: set[int] = set()  # other optimizers that stepped since

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While active, the ends of steps are reported."""
        handle = register_optimizer_step_post_hook(self._stepped)
        _active.append(self)
        try:
            yield
        finally:
            _active.remove(self)
            handle.remove()

    def mark(self) -> None:
        """A step ends here, by `tracing.step()`."""
        self._marked = True
        self._end()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._marked or torch.compiler.is_compiling():
            return
        leader = self._leader() if self._leader is not None else None
        if leader is not None and leader is not optimizer and id(optimizer) not in self._others:
            self._others.add(id(optimizer))
            return
        if leader is not optimizer:
            self._leader = ref(optimizer)
        self._end()

    def _end(self) -> None:
        self._others.clear()
        self._ended()


def step() -> None:
    """End a step here: an iteration of a loop. Launches are numbered within their step.

    Does nothing where nothing is recorded.
    """
    for steps in tuple(_active):
        steps.mark()
