"""Records the compiler passes of every kernel that this process and its compile workers compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from tracing.model import Compilation, Kernel, NotCovered
from tracing.record.passes.recorder import PassRecorder
from tracing.record.passes.workers import recorded_in_workers
from tracing.store import Run, RunWriter

PassIRWhen: TypeAlias = Literal["after", "during"]


@contextmanager
def passes_recorded(writer: RunWriter, when: PassIRWhen) -> Iterator[PassRecorder]:
    """While active, compiler passes are recorded; a kernel that was compiled before is reported at the end.

    when -- "during": the IR around each pass, too; "after": it is derived later, from what is recorded
    """
    during = when == "during"
    with PassRecorder(writer, print_ir=during) as recorder, recorded_in_workers(writer, print_ir=during):
        yield recorder
    run = Run(writer.path)
    compiled = {compilation.hash for compilation in run.records(Compilation)}
    for kernel in run.records(Kernel):
        if kernel.kind == "triton" and kernel.hash not in compiled:
            what = f"the compiler passes of {kernel.name}: it was compiled before the run"
            writer.append(NotCovered(what, "a process that has not launched it yet"))
