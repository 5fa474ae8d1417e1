"""Describe how a compile ended early: by a diagnostic, an assertion, a signal, an exception, or a timeout.

Two endings are equal if they have the same part of the compiler and the same message, ignoring locations,
numbers and value names, which depend on earlier compilations.
"""

from __future__ import annotations

import mmap
import re
import struct
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.resume import ResumePoint, resume, stages_of
from tracing.compiler.stderr import errors_in, last_words
from tracing.compiler.steps import Pass
from tracing.errors import Problem
from tracing.model import Compilation

DeathKind: TypeAlias = Literal["diagnostic", "assertion", "fatal error", "signal", "time"]
PARTS = {  # the part of a stage that runs outside of MLIR's passes
    "llir": "LLVM",
    "ptx": "LLVM's code generator",
    "amdgcn": "LLVM's code generator",
    "cubin": "ptxas",
    "hsaco": "the linker",
}
_ASSERTION = re.compile(r"([\w./+-]*): Assertion `(.*)' failed", re.DOTALL)
_LOCATION_PREFIX = re.compile(r"^(?:.*?\berror\s*: |pass \d+, [\w-]+, failed: |stage \w+ failed: )+")
_VOLATILE = re.compile(r"0x[0-9a-f]+|%[\w$.#-]+|\d+")
_MARK = struct.Struct("<qqd200s")


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The early ending of a compile."""

    kind: DeathKind
    message: str  # one line
    part: str  # "tritongpu-pipeline", "LLVM", "ptxas"
    index: int | None  # of the pass of MLIR, if it is one
    stage: str
    reached: float = 0.0  # seconds after which that part began

    def same(self, other: EarlyEnd) -> bool:
        """True if two compiles ended alike, in the same part of the compiler and with the same message."""
        return (self.kind, self.part, _plain(self.message)) == (other.kind, other.part, _plain(other.message))

    def __str__(self) -> str:
        return f"{self.part}: {self.message}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One compile, and how it ended."""

    ending: EarlyEnd | None  # None: it reached its end
    ended: ChildResult


def attempt(
    compilation: Compilation,
    point: ResumePoint,
    *,
    drop: Collection[int] = (),
    until: int | None = None,
    last: str | None = None,
    seconds: float,
    run: Callable[[Callable[[], Any], float], ChildResult] = in_child,
) -> Attempt:
    """Compile from a position in a child process, and return how it ended.

    drop    -- indices of passes to leave out
    until   -- the index of the last pass to run; None: compile to `last`
    seconds -- time limit
    run     -- how the child is run
    """
    mark = _Mark()

    def call() -> None:
        try:
            resume(compilation, point, last=last, drop=drop, observer=_Marking(mark, until))
        except _Over:
            return

    ended = run(call, seconds)
    if not ended.failure:
        return Attempt(None, ended)
    at = mark.get()
    stage = _stage_after(compilation, point.stage, at.stages)
    part = at.name or PARTS.get(stage, f"stage {stage}")
    ending = _ending(ended, part, at.index if at.name else None, stage)
    return Attempt(replace(ending, reached=at.seconds), ended)


def early_end_of(ended: ChildResult, part: str) -> EarlyEnd:
    """The ending of a child that crashed in one pass, `part`."""
    ending = _ending(ended, part, None, "")
    message = errors_in(ended.stderr).splitlines()
    return replace(ending, message=message[0].strip()) if ending.kind == "diagnostic" and message else ending


def _ending(ended: ChildResult, part: str, index: int | None, stage: str) -> EarlyEnd:
    kind: DeathKind = "diagnostic"
    message = ended.failure.splitlines()[0]
    if ended.timed_out:
        kind, message = "time", ended.failure
    elif match := _ASSERTION.search(ended.stderr):
        kind, message = "assertion", f"Assertion `{match[2]}' failed"
    elif words := last_words(ended.stderr):
        kind, message = "fatal error", words
    elif ended.signal:
        kind, message = "signal", ended.signal
    return EarlyEnd(kind, message, part, index, stage)


def _plain(message: str) -> str:
    return _VOLATILE.sub("", _LOCATION_PREFIX.sub("", message))


def _stage_after(compilation: Compilation, first: str, ended: int) -> str:
    stages = stages_of(compilation)
    return stages[min(stages.index(first) + ended, len(stages) - 1)]


class _Over(Problem):
    # the pass in question ended
    pass


@dataclass(frozen=True, slots=True)
class _At:
    stages: int  # that ended
    index: int = 0  # index of the running pass
    name: str = ""  # name of the running pass; "": none runs
    seconds: float = 0.0  # since the compile began


class _Mark:
    # the position of a compile, in shared memory, which the parent reads after the child has ended

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def set(self, at: _At) -> None:
        packed = _MARK.pack(at.stages, at.index, at.seconds, at.name.encode())
        self._memory[: _MARK.size] = packed

    def get(self) -> _At:
        stages, index, seconds, name = _MARK.unpack(self._memory[: _MARK.size])
        return _At(stages, index, name.rstrip(b"\0").decode(errors="replace"), seconds)


class _Marking:
    # an observer that notes where the compile is

    def __init__(self, mark: _Mark, until: int | None) -> None:
        self._mark, self._until = mark, until
        self._stages = 0
        self._began = time.monotonic()

    def before(self, step: Pass, module: Any) -> None:
        self._mark.set(self._at(step.index, step.name))

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self._mark.set(self._at())
        if self._until is not None and step.index >= self._until:
            raise _Over("the pass ended")

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        self._stages += 1
        self._mark.set(self._at())

    def ended(self) -> None: ...

    def _at(self, index: int = 0, name: str = "") -> _At:
        return _At(self._stages, index, name, time.monotonic() - self._began)
