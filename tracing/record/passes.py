"""Every compiler pass of a run: what it was called with, the IR before and after, and how long it took.

The IR before a pass, and the line that names the pass, are in the operating system's hands before the pass
runs: one that takes the process down leaves both. IR is printed once a pass, as what one pass leaves is what
the next one finds, and only what changed is stored.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tracing.compiler.pipeline import Pass, observed
from tracing.model import Compilation, PassEnd, PassStart, StageArtefact
from tracing.store import RunWriter

_OWN = f"{Path(__file__).parents[1]}{os.sep}"  # the kernels that compute digests are not the program's


class PassRecorder:
    """While entered, every compilation in this process, in whichever thread, is written to a run."""

    def __init__(self, writer: RunWriter) -> None:
        self.count = 0  # compilations seen
        self._writer = writer
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._exit = ExitStack()

    def __enter__(self) -> PassRecorder:
        self._exit.enter_context(observed(self._started))
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _started(self, compilation: Compilation, source: Any) -> _CompilationRecorder | None:
        if (compilation.file or "").startswith(_OWN):
            return None
        if self._process != os.getpid():
            return None  # a fork: the open files are its parent's; Inductor's workers have their own recorder
        with self._lock:
            number, self.count = self.count, self.count + 1
        return _CompilationRecorder(self._writer, msgspec.structs.replace(compilation, id=number), source)


class _CompilationRecorder:
    # an observer of one compilation

    def __init__(self, writer: RunWriter, compilation: Compilation, source: Any) -> None:
        self._writer = writer
        self._id = compilation.id
        self._pack = writer.pack()
        self._text = source if isinstance(source, str) else source.str()
        self._blob = self._pack.add(self._text)
        self._manager = 0
        writer.append(msgspec.structs.replace(compilation, source=self._blob))

    def before(self, step: Pass, module: Any) -> None:
        if step.manager != self._manager:  # the stage's Python code may have changed the IR since
            self._manager = step.manager
            self._look(module)
        self._writer.append(
            PassStart(
                self._id, step.index, step.stage, step.name, step.adder, step.arguments, step.pipeline,
                step.caller, self._blob,
            )
        )  # fmt: skip

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        self._look(module)
        self._writer.append(PassEnd(self._id, step.index, self._blob, round(wall_ms, 3)))

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        blob = self._pack.add(content if isinstance(content, (str, bytes)) else str(content))
        self._writer.append(StageArtefact(self._id, stage, blob, round(wall_ms, 3)))

    def ended(self) -> None:
        self._pack.close()

    def _look(self, module: Any) -> None:
        text = module.str()
        if text != self._text:  # comparing is cheaper than hashing
            self._text = text
            self._blob = self._pack.add(text)
