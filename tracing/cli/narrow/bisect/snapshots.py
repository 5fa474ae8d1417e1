"""The IR between the passes of a compilation, as input for a judge of `tracing bisect` that reads IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracing.analyze.bisect import layers
from tracing.analyze.bisect.judge import MACHINE, MLIR
from tracing.analyze.bisect.search import Step
from tracing.analyze.bisect.snapshots import Snapshot
from tracing.compiler.codegen.llvm import printed
from tracing.compiler.history import History
from tracing.compiler.resume import resume
from tracing.compiler.steps import StageEnds
from tracing.errors import Problem
from tracing.model import Compilation

_SOURCE = Step(-1, "the frontend, which makes IR of the kernel's source")
_TRANSLATION = Step(-1, "the translation to LLVM IR")


def mlir_snapshots(chosen: Compilation, happened: History) -> Iterator[Snapshot]:
    """The IR that enters the compilation, and the IR after each pass of MLIR."""
    passes = happened.passes
    text = passes[0].before
    yield Snapshot(layers.MLIR, _SOURCE, _language(chosen.first), text)
    for one in passes:
        step, language = one.step, _language(one.step.stage)
        if one.before != text:
            own = Step(step.index - 1, f"Triton's own code before {step.name}")
            yield Snapshot(layers.MLIR, own, language, one.before)
        text = one.after or ""
        yield Snapshot(layers.MLIR, Step(step.index, step.name), language, text)


def llvm_snapshots(chosen: Compilation, happened: History, seconds: float) -> list[Snapshot]:
    """The IR after each pass of LLVM.

    seconds -- time limit of printing it

    Raises Problem if LLVM fails, or does not end in time.
    """
    last = "ptx" if "ptx" in happened.stages else "amdgcn"
    point = happened.resume_point(happened.passes[-1].step.index)

    def compile(stage_ended: Callable[[], None]) -> Any:
        return resume(chosen, point, last=last, observer=StageEnds(stage_ended))

    ended, passes = printed(compile, seconds=seconds)
    if ended.failure:
        raise Problem(f"the IR of LLVM's passes cannot be printed: {ended.failure}")
    step, snapshots = _TRANSLATION, []
    for one in passes:
        snapshots.append(Snapshot(layers.LLVM, step, _llvm_language(one.before), one.before))
        step = Step(one.index or -1, one.name, one.unit)
        if one.after is not None:
            snapshots.append(Snapshot(layers.LLVM, step, _llvm_language(one.after), one.after))
    return snapshots


def reads_llvm(languages: Sequence[str], happened: History) -> bool:
    """True if a judge of these languages reads IR of LLVM that the compilation has."""
    return bool({"llir", MACHINE} & set(languages)) and "llir" in happened.artefacts


def _language(stage: str) -> str:
    return MLIR if stage == "llir" else stage


def _llvm_language(text: str) -> str:
    return MACHINE if text.startswith("# Machine code") else "llir"
