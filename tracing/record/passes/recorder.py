"""Records every compiler pass: its arguments, its duration, and the artefact of each stage.

The record that names a pass reaches the operating system before the pass runs, so it is kept even if the pass
crashes the process. The IR between the passes is derived later (`tracing.record.passes.derivation`), because
MLIR takes nearly as long to print it as to compile; on request it is printed while the passes run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tracing.compiler.block_locations import block_locations
from tracing.compiler.pipeline import observed
from tracing.compiler.steps import Pass
from tracing.launch.hidden_computation import own_frames_skipped
from tracing.model import Compilation, PassEnd, PassStart, StageArtefact
from tracing.record.passes.ir import PassIRWriter
from tracing.store import RunWriter

_OWN = f"{Path(__file__).parents[2]}{os.sep}"  # the kernels that compute digests are not the program's


class PassRecorder:
    """While entered, every compilation in this process, in whichever thread, is written to a run."""

    def __init__(self, writer: RunWriter, *, print_ir: bool = False) -> None:
        """`print_ir`: print the IR around every pass now; compilations take 1.4 to 1.8 times as long."""
        self.count = 0  # compilations seen
        self.print_ir = print_ir
        self.eager = False  # True: the case runs in eager, for comparison
        self.began: Callable[[int], None] = lambda count: None  # called with `count` before each compilation
        self._writer = writer
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._exit = ExitStack()

    def __enter__(self) -> PassRecorder:
        self._exit.enter_context(own_frames_skipped())
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
        self.began(number + 1)
        known = msgspec.structs.replace(compilation, id=number, eager=self.eager)
        return _CompilationRecorder(self._writer, known, source, self.print_ir)


class _CompilationRecorder:
    # an observer of one compilation

    def __init__(self, writer: RunWriter, compilation: Compilation, source: Any, print_ir: bool) -> None:
        self._writer = writer
        self._id = compilation.id
        self._pack = writer.pack()
        self._ir = PassIRWriter(writer, self._pack, writer.process, compilation.id) if print_ir else None
        module = None if isinstance(source, str) else source
        blob = self._pack.add(source if module is None else module.str())
        locations = () if module is None else block_locations(module)
        writer.append(msgspec.structs.replace(compilation, source=blob, block_locations=locations))

    def before(self, step: Pass, module: Any) -> None:
        if self._ir is not None:
            self._ir.before(step, module)
        self._writer.append(
            PassStart(
                self._id, step.index, step.stage, step.name, step.adder, step.arguments, step.pipeline,
                step.caller,
            )
        )  # fmt: skip

    def after(self, step: Pass, module: Any, wall_ms: float) -> None:
        if self._ir is not None:
            self._ir.after(step, module, wall_ms)
        self._writer.append(PassEnd(self._id, step.index, round(wall_ms, 3)))

    def artefact(self, stage: str, content: object, wall_ms: float) -> None:
        blob = self._pack.add(content if isinstance(content, (str, bytes)) else str(content))
        self._writer.append(StageArtefact(self._id, stage, blob, round(wall_ms, 3)))

    def ended(self) -> None:
        self._pack.close()
