"""Compile from source and keep the IR around every pass, the artefact of every stage, and the ending.

The compile runs in a child process that sends events as they happen. So everything before a crash or a
hang is known.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import IO, Any

import msgspec

from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.resume import ResumePoint, resume, stages_of
from tracing.compiler.steps import Pass
from tracing.model import Compilation

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class StartedPass:
    """One pass that began."""

    step: Pass
    before: str  # the IR
    after: str | None  # None: it did not end


@dataclass(frozen=True, slots=True)
class History:
    """The passes, artefacts and ending of one compilation."""

    passes: tuple[StartedPass, ...]
    artefacts: Mapping[str, str | bytes]  # of the stages that ended
    stages: tuple[str, ...]  # that it has, from its first one on
    ended: ChildResult

    def resume_point(self, index: int) -> ResumePoint:
        """The position before the pass of this index."""
        one = self.passes[index]
        first = next(other for other in self.passes if other.step.stage == one.step.stage)
        return ResumePoint(one.before, one.step.stage, index, entered=first.before)


def start_of(compilation: Compilation, source: str) -> ResumePoint:
    """The position at which a compilation begins; `source` is the text of its input."""
    return ResumePoint(source, compilation.first, 0, locations=compilation.block_locations)


def history(compilation: Compilation, source: str, *, last: str | None = None, seconds: float) -> History:
    """Compile from source, in a child, and return its history.

    source  -- the text of `compilation.source`
    last    -- the artefact to end with, "ptx"; None: the backend's last one
    seconds -- after which the child is killed

    Cost: two compiles: one for the artefacts, one that prints the IR. Raises Problem for a target or an
    option that this Triton does not know.
    """
    stages = stages_of(compilation)
    with tempfile.TemporaryFile() as file:

        def call() -> None:
            resume(compilation, start_of(compilation, source), last=last, observer=_Telling(file))

        ended = in_child(call, seconds)
        file.seek(0)
        passes, artefacts = _read(file)
    return History(tuple(passes), artefacts, tuple(stages), ended)


class _Telling:
    # an observer, in the child: each event is sent before the next thing happens

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._text = ""

    def before(self, step: Pass, module: Any) -> None:
        self._tell({"before": asdict(step), "ir": self._changed(module)})

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self._tell({"after": step.index, "ir": self._changed(module)})

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        self._tell({"stage": stage, "content": content if isinstance(content, bytes) else str(content)})

    def ended(self) -> None: ...

    def _changed(self, module: Any) -> str | None:
        text = module.str()
        if text == self._text:
            return None
        self._text = text
        return str(text)

    def _tell(self, event: Mapping[str, Any]) -> None:
        data = msgspec.msgpack.encode(event)
        self._file.write(_LENGTH.pack(len(data)) + data)
        self._file.flush()


def _read(file: IO[bytes]) -> tuple[list[StartedPass], dict[str, str | bytes]]:
    passes: list[StartedPass] = []
    artefacts: dict[str, str | bytes] = {}
    text = ""
    for event in _events(file):
        if event.get("ir") is not None:
            text = event["ir"]
        if "before" in event:
            passes.append(StartedPass(msgspec.convert(event["before"], Pass), text, None))
        elif "after" in event:
            passes[-1] = StartedPass(passes[-1].step, passes[-1].before, text)
        else:
            artefacts[event["stage"]] = event["content"]
    return passes, artefacts


def _events(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    # all complete events: the child may have died while it wrote the last one
    while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        data = file.read(length)
        if len(data) < length:
            return
        yield msgspec.msgpack.decode(data)
