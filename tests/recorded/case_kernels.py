"""Records every kernel of a case for any target, compiles it without recording, and resumes it from any pass.

A case runs once, on the GPU if there is one, and Triton tells which sources it is given. Each of them can
then be compiled for a device that is not there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch._inductor.config as inductor
import triton
from data.kernels import TARGETS
from handmade.records import new_run
from triton.compiler import ASTSource

from tracing import store
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_table import passes_of
from tracing.compiler.codegen.reassemble import difference
from tracing.compiler.resume import ResumePoint, resume, resume_point_before
from tracing.model import Compilation, PassRecord
from tracing.program.case import load_case
from tracing.program.device import Device
from tracing.program.plain_run import execute
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder

SETTINGS = ("num_warps", "num_stages", "num_ctas", "enable_fp_fusion", "debug", "sanitize_overflow")
Artefacts = Mapping[str, "bytes | str"]


@dataclass(frozen=True)
class Source:
    """The arguments of a call of `triton.compile`, except for the target."""

    source: ASTSource | str  # the path of a file with IR
    options: Mapping[str, Any] = field(default_factory=dict)


def the_assembler_did(compilation: Compilation, artefacts: Any, cubins: tuple[Any, Any]) -> bool:
    answer = difference(artefacts["ptx"], *cubins, target=compilation.target, options=compilation.options)
    print(answer.reason)
    return answer.assembler


def sources(case: str, target: str) -> list[Source]:
    """The source of every kernel that a case compiles, each configuration that autotuning tries included."""
    sources: list[Source] = []

    def on_compile(*, src: Any, metadata: Mapping[str, Any], **_: object) -> None:
        sources.append(Source(src, {name: metadata[name] for name in SETTINGS if name in metadata}))

    with triton.knobs.compilation.scope(), inductor.patch(compile_threads=1):
        triton.knobs.compilation.listener = on_compile
        execute(load_case(case), Device(target), seed=0)
    return sources


def recorded(sources: Sequence[Source], target: str, runs: Path) -> store.Run:
    """A run with the passes of these kernels, and their IR, derived as after a recording."""
    writer = new_run(runs)
    with PassRecorder(writer):
        for one in sources:
            untouched(one, target)
    derive(writer.path)
    writer.close()
    return store.Run(writer.path)


def untouched(one: Source, target: str) -> tuple[str, Artefacts]:
    """The hash and the artefacts of a kernel as Triton compiles it, with no cache."""
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        kernel = triton.compile(one.source, target=TARGETS[target], options=dict(one.options))
        return kernel.hash, {stage: content for stage, content in kernel.asm.items() if stage != "source"}


def artefacts(run: store.Run, compilation: Compilation) -> Artefacts:
    """The recorded artefacts of the stages."""
    return {
        one.stage: run.bytes(one.blob) if one.stage in ("cubin", "hsaco") else run.text(one.blob)
        for of, one in run.artefacts()
        if of.hash == compilation.hash
    }


def not_identical(run: store.Run, sources: Sequence[Source], target: str) -> list[str]:
    """The kernels whose artefacts differ from an unrecorded compile: name and stages."""
    known = {one.hash: one for one in compilations(run)}
    different = []
    for one in sources:
        hash, made = untouched(one, target)
        kept = artefacts(run, known[hash])
        stages = [stage for stage in kept if made.get(stage) != kept[stage]]
        cubins = kept.get("cubin", b""), made.get("cubin", b"")
        if stages and not (stages == ["cubin"] and the_assembler_did(known[hash], kept, cubins)):
            different.append(f"{known[hash].kernel_name} {hash[:12]}: {', '.join(stages)}")
    return different


def resume_points(run: store.Run, passes: Sequence[PassRecord]) -> list[ResumePoint]:
    """The resume points before and after every pass; two adjacent points with equal IR are one."""
    points: list[ResumePoint] = []
    for one in passes:
        before = resume_point_before(one, passes, run.text)
        after = replace(before, index=one.index + 1, ir=run.text(one.after or ""))
        points += [place for place in (before, after) if place not in points[-1:]]
    return points


def not_resumed(run: store.Run, compilation: Compilation, step: int = 1) -> tuple[int, list[str]]:
    """How many resume points were tried, and those that give the assembler a different text.

    step -- every n-th resume point is tried, and the last one
    """
    kept = artefacts(run, compilation)
    last = "ptx" if "ptx" in kept else "amdgcn"
    tried = resume_points(run, passes_of(run, compilation))
    tried = [*tried[:-1:step], tried[-1]]
    different = [
        f"{compilation.kernel_name} {compilation.hash[:12]}: {place.stage} {place.index}"
        for place in tried
        if resume(compilation, place, last=last)[last] != kept[last]
    ]
    return len(tried), different
