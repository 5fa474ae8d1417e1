"""The kernels of a run for a report: a row for the table of all, and a chunk with code and passes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.analyze.passes.compilations import compilations, label
from tracing.analyze.passes.copied_lines import of_user
from tracing.analyze.passes.disassembly import Disassemble, disassembling
from tracing.analyze.passes.locations import Frame, Located, Stack
from tracing.analyze.passes.source_map import StageLines, artefacts_by_hash, located_stages
from tracing.errors import Problem
from tracing.model import Blob, Compilation, Kernel, PassRecord
from tracing.report.html.chunks import Chunks
from tracing.report.html.launch_data import ReportedKernel, RunLaunches
from tracing.report.html.pass_data import PassReader
from tracing.store import Run

Commands = Callable[[Compilation, str, Sequence[PassRecord]], list[str]]


@dataclass(frozen=True, slots=True)
class KernelSources:
    """The sources of a report's facts about kernels."""

    passes: Mapping[str, Sequence[PassRecord]]  # by hash of the compilation
    nvdisasm: Path | None  # None: a report has no SASS
    commands: Commands  # to type next, for a compilation, its label and its passes
    progress: Callable[[], None] = lambda: None


def kernel_data(
    run: Run, launches: RunLaunches, sources: KernelSources, chunks: Chunks
) -> list[dict[str, Any]]:
    """Every kernel of a run: those that were launched first, then those that were only compiled."""
    blobs = artefacts_by_hash(run)
    with _disassembling(run, blobs.values(), sources.nvdisasm) as disassemble:
        return _rows(run, launches, sources, chunks, blobs, disassemble)


def _rows(
    run: Run,
    launches: RunLaunches,
    sources: KernelSources,
    chunks: Chunks,
    blobs: Mapping[str, Mapping[str, Blob]],
    disassemble: Disassemble | None,
) -> list[dict[str, Any]]:
    known, reader = compilations(run), PassReader(run.text)
    by_hash = {one.hash: one for one in known}
    rows = []
    for kernel in launches.kernels.values():
        compiled = by_hash.pop(kernel.launch.kernel.hash, None)
        name = label(known, compiled) if compiled else kernel.launch.kernel_name
        facts = _facts(kernel.launch.kernel)
        stages = {**kernel.launch.kernel.stages, **blobs.get(kernel.launch.kernel.hash, {})}
        content = _content(run, kernel.launch.kernel, compiled, stages, sources, reader, disassemble)
        rows.append({**facts, **_sums(kernel), **_row(name, content, compiled, sources, chunks)})
    # configurations that an autotuner did not choose have the source of the one that it chose
    sources_of = {
        (one.launch.kernel.name, one.launch.kernel.file): one.launch.kernel
        for one in launches.kernels.values()
    }
    for compiled in by_hash.values():
        twin = sources_of.get((compiled.kernel_name, compiled.file))
        content = _content(run, twin, compiled, blobs.get(compiled.hash, {}), sources, reader, disassemble)
        rows.append(
            {**_unlaunched(compiled), **_row(label(known, compiled), content, compiled, sources, chunks)}
        )
    return rows


def _disassembling(
    run: Run, blobs: Iterable[Mapping[str, Blob]], nvdisasm: Path | None
) -> AbstractContextManager[Disassemble | None]:
    def cubins() -> Iterator[bytes]:
        for one in blobs:
            try:
                yield run.bytes(one["cubin"])
            except (KeyError, Problem):  # `_content` says which blob is missing or damaged
                continue

    return disassembling(cubins(), nvdisasm) if nvdisasm else nullcontext()


def _facts(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name, "hash": kernel.hash, "target": kernel.target, "kind": kernel.kind,
        "num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "file": kernel.file,
        "constants": dict(kernel.constants),
    }  # fmt: skip


def _sums(kernel: ReportedKernel) -> dict[str, Any]:
    return {
        "launches": kernel.count, "wall_us": round(kernel.wall_us, 1),
        "device_us": round(kernel.device_us, 2), "flags": kernel.flags,
    }  # fmt: skip


def _unlaunched(one: Compilation) -> dict[str, Any]:
    options = {name: one.options.get(name, "") for name in ("num_warps", "num_stages")}
    return {
        "name": one.kernel_name, "hash": one.hash, "target": one.target, "kind": "triton", **options,
        "file": one.file, "constants": dict(one.constants), "launches": 0, "wall_us": 0, "device_us": 0,
        "flags": 0,
    }  # fmt: skip


def _row(
    name: str,
    content: dict[str, Any],
    compiled: Compilation | None,
    sources: KernelSources,
    chunks: Chunks,
) -> dict[str, Any]:
    passes = sources.passes.get(compiled.hash, ()) if compiled else ()
    ended = [one for one in passes if one.after is not None]
    sources.progress()
    return {
        "label": name,
        "passes": len(passes),
        "changed": sum(one.changed for one in ended),
        "pass_ms": round(sum(one.wall_ms or 0.0 for one in ended), 2),
        "died": next((one.name for one in passes if one.after is None), None),
        "unread": content["note"],
        "stages": [one["stage"] for one in content["stages"]],
        "next": sources.commands(compiled, name, passes) if compiled else [],
        "chunk": chunks.add(content),
    }


# ---- the code of one kernel, stage by stage


def _content(
    run: Run,
    kernel: Kernel | None,
    compiled: Compilation | None,
    blobs: Mapping[str, Blob],
    sources: KernelSources,
    reader: PassReader,
    disassemble: Disassemble | None,
) -> dict[str, Any]:
    copied = kernel.copied if kernel else ()
    target = compiled.target if compiled else kernel.target if kernel else ""
    table = LineTable()
    python = _python(run, kernel, compiled)
    stages = [table.python(*python, copied)] if python else []
    try:
        located = located_stages(run, target, blobs, copied, disassemble) if blobs else []
        stages += [table.stage(one) for one in located if one.text or one.note]
        passes = reader.passes(sources.passes.get(compiled.hash, ())) if compiled else []
    except Problem as problem:  # a blob is missing or damaged: the rest of the report is written all the same
        return {**table.data(), "stages": stages, "passes": [], "note": problem.problem}
    return {**table.data(), "stages": stages, "passes": passes, "note": ""}


def _python(run: Run, kernel: Kernel | None, compiled: Compilation | None) -> tuple[str, str, int] | None:
    # text, file, number of its first line
    if kernel is None or kernel.source is None:
        return None
    position = kernel.file or (compiled.file if compiled else None) or kernel.name
    file, _, line = position.rpartition(":")
    first = int(line) if line.isdecimal() else 1
    try:
        return run.text(kernel.source), file or position, first
    except Problem:
        return None


class LineTable:
    """The Python lines that the stages of one kernel name, each frame, stack and set of stacks once."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[Stack, int] = {}
        self._sets: dict[tuple[Stack, ...], int] = {}

    def data(self) -> dict[str, Any]:
        """Frames as [file, line]; stacks as positions of frames, innermost first; sets of stacks."""
        sets = [[self._stack(stack) for stack in stacks] for stacks in self._sets]
        stacks = [[self._frame(frame) for frame in stack] for stack in self._stacks]
        return {
            "sets": sets,
            "stacks": stacks,
            "frames": [[frame.file, frame.line] for frame in self._frames],
        }

    def stage(self, one: StageLines) -> dict[str, Any]:
        """A stage: its text, and for each line of it that is known, the line and its set of stacks."""
        links: list[int] = []
        for located in one.located:
            if located.stacks:
                links += (located.line, self._set(located.stacks))
        return {"stage": one.stage, "text": one.text, "note": one.note, "first": 1, "links": links}

    def python(self, text: str, file: str, first: int, copied: Any) -> dict[str, Any]:
        """The Python source, whose lines are stacks of one frame."""
        lines = [
            Located(number, "", ((Frame(file, first + number - 1),),))
            for number in range(1, len(text.splitlines()) + 1)
        ]
        one = StageLines("python", of_user(lines, copied), text=text)
        return {**self.stage(one), "first": first, "file": file}

    def _set(self, stacks: tuple[Stack, ...]) -> int:
        if stacks not in self._sets:
            self._sets[stacks] = len(self._sets)
            for stack in stacks:
                self._stack(stack)
        return self._sets[stacks]

    def _stack(self, stack: Stack) -> int:
        if stack not in self._stacks:
            self._stacks[stack] = len(self._stacks)
            for frame in stack:
                self._frame(frame)
        return self._stacks[stack]

    def _frame(self, frame: Frame) -> int:
        return self._frames.setdefault(frame, len(self._frames))
