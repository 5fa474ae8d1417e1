"""Derives LLVM's passes of a recorded kernel: repeats LLVM's half of the compilation and prints each pass.

LLVM gets the recorded IR, so nothing else has to be recorded. The output of a stage must be equal to the
recorded one, bit for bit; else the run says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tracing.compiler.child import ChildResult
from tracing.compiler.codegen import llvm
from tracing.compiler.codegen.llvm_text import LlvmPassText
from tracing.compiler.resume import ResumePoint, resume
from tracing.compiler.stderr import last_words
from tracing.compiler.steps import StageEnds
from tracing.errors import Problem
from tracing.model import Blob, Compilation, LlvmPass, LlvmPasses, PackedBlob
from tracing.store import Pack, Run, blob_name, reopened

LEVEL = 9  # of the compression, as for the IR of MLIR


def derive_llvm(
    run: Run, compilation: Compilation, point: ResumePoint, artefacts: Mapping[str, Blob], *, seconds: float
) -> LlvmPasses:
    """Repeat LLVM's half of one compilation, and write what each pass did to the run.

    point     -- before the last pass of MLIR
    artefacts -- the artefacts of the stages
    seconds   -- time limit

    Cost: some ten times LLVM's share of the compilation: 0.3 s for a small kernel, some seconds for a large
    one, on one core. It forks, and uses no GPU.

    A compile that times out or is killed is returned with the pass that was running, and is not recorded: the
    next attempt may succeed. Raises Problem if LLVM's passes cannot be distinguished, or if none of them
    began.
    """
    last = "ptx" if compilation.target.startswith("cuda") else "amdgcn"

    def compile(stage_ended: Callable[[], None]) -> Any:
        return resume(compilation, point, last=last, observer=StageEnds(stage_ended))

    ended, printed = llvm.printed(compile, seconds=seconds)
    made: Mapping[str, str] = ended.result or {}
    differs = tuple(stage for stage, content in made.items() if blob_name(content) != artefacts.get(stage))
    writer = reopened(run.use_scratch() if ended.transient else run.scratch or run.path)
    writer.known(one.blob for one in run.records(PackedBlob))
    try:
        passes = tuple(_packed(writer.pack(LEVEL), printed, last))
        if not passes:
            raise Problem(f"LLVM ran no pass on {compilation.kernel_name}: {_failure(ended)}")
        derived = LlvmPasses(compilation.hash, passes, _failure(ended), differs)
        writer.append(derived)
    finally:
        writer.close()
    return derived


def _failure(ended: ChildResult) -> str:
    death = last_words(ended.stderr) if ended.failure else ""
    return ": ".join(filter(None, [ended.failure, death]))


def _packed(pack: Pack, printed: Iterable[LlvmPassText], generator: str) -> Iterator[LlvmPass]:
    for one in printed:
        before = pack.add(one.before)
        after = pack.add(one.after) if one.after is not None else None
        yield LlvmPass(one.index, generator if one.generator else "llir", one.name, one.unit, before, after)
    pack.close()
