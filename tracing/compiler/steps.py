"""The passes of one compilation, and the observers that receive its events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass about to run; the fields of `PassStart` that are known without looking at the IR."""

    index: int  # order in the compilation, over all of its stages, from 0
    stage: str  # "ttir", "ttgir", "llir"
    name: str  # "tritongpu-coalesce"
    adder: str  # "passes.ttgpuir.add_coalesce"; "" for a block of passes that C++ added
    arguments: tuple[str, ...]
    pipeline: str  # text for `triton-opt --pass-pipeline`
    caller: str  # "path:line" in Triton's compiler.py
    manager: int  # order of its pass manager in the compilation: between two of them Python may change the IR


class Observer(Protocol):
    """Receives the events of one compilation."""

    def before(self, step: Pass, module: Any) -> None:
        """A pass is about to run on `module`, whose text is `module.str()`."""

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        """A pass ended; not called for a pass that raises."""

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        """A stage ended with an artefact: a module, whose text is `str(content)`, or text, or bytes."""

    def ended(self) -> None:
        """No event follows: the last stage ended, or one raised."""


class StageEnds:
    """An observer that receives only the end of each stage."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._stage_ended = ended

    def before(self, step: Pass, module: Any) -> None: ...

    def after(self, step: Pass, module: Any, wall_ms: float) -> None: ...

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        self._stage_ended()

    def ended(self) -> None: ...


class _Thread(threading.local):
    current: tuple[Steps, str] | None = None  # whose stage this thread runs


_thread = _Thread()


def current() -> tuple[Steps, str] | None:
    """The compilation whose stage this thread runs, and the stage's name; None outside of `Steps.stage`."""
    return _thread.current


class Steps:
    """The passes of one compilation, counted as they come."""

    def __init__(
        self, observers: Collection[Observer] = (), *, first: int = 0, drop: Collection[int] = ()
    ) -> None:
        """Run the passes from index `first` on, without those in `drop`; others are counted, not reported."""
        self.observers = observers
        self.first = first
        self.drop = drop
        self.count = 0
        self.managers = 0
        self.running: Pass | None = None  # also after it raised

    def stage(self, name: str, run: Callable[[Any, Any], Any], source: Any, metadata: Any) -> Any:
        """Run one stage of a backend, pass by pass, and return its artefact."""
        before, _thread.current = _thread.current, (self, name)
        started = time.perf_counter()
        try:
            artefact = run(source, metadata)
        finally:
            _thread.current = before
        wall_ms = (time.perf_counter() - started) * 1e3
        for observer in self.observers:
            observer.artefact(name, artefact, wall_ms)
        return artefact

    def take(self, step: Pass, module: Any, run: Callable[[], None]) -> None:
        """Run one pass, unless it is left out."""
        if step.index < self.first or step.index in self.drop:
            return
        for observer in self.observers:
            observer.before(step, module)
        started = time.perf_counter()
        self.running = step
        run()
        self.running = None
        wall_ms = (time.perf_counter() - started) * 1e3
        for observer in self.observers:
            observer.after(step, module, wall_ms)
