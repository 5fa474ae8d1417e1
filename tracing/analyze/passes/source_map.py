"""Follow a Python line through the stages of a compiled kernel.

The stages are joined on (file, line, inline stack), as `locations` reads them, so that the code of a helper
function is kept separate for each of its calls. A stage that cannot be read states the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePath

from tracing.analyze.graphs.line_kernels import split_position
from tracing.analyze.passes.copied_lines import copied_functions, of_user
from tracing.analyze.passes.disassembly import Disassemble, disassembled
from tracing.analyze.passes.locations import Frame, Located, Stack, invented_locations, located
from tracing.errors import Problem
from tracing.model import Blob, Compilation, CopiedFunction
from tracing.model.library_files import is_library
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class StageLines:
    """The lines of one stage of a kernel, with their Python origins."""

    stage: str
    located: Sequence[Located] = ()
    note: str = ""  # why this stage is unknown, or what in it is unreliable
    text: str = ""  # the whole of it; of a cubin as disassembled


@dataclass(frozen=True, slots=True)
class Thread:
    """The code of one Python line, reached by one path of calls, stage by stage."""

    stack: Stack
    stages: Mapping[str, Sequence[Located]]  # only stages that contain something of the line


def artefacts(run: Run, compilation: Compilation) -> dict[str, Blob]:
    """The artefacts of a compilation, by file suffix."""
    return artefacts_by_hash(run).get(compilation.hash, {})


def artefacts_by_hash(run: Run) -> dict[str, dict[str, Blob]]:
    """The artefacts of every compilation of a run, by its hash and by file suffix."""
    blobs: dict[str, dict[str, Blob]] = {}
    for owner, artefact in run.artefacts():
        blobs.setdefault(owner.hash, {}).setdefault(artefact.stage, artefact.blob)
    return blobs


def stage_lines(run: Run, compilation: Compilation, nvdisasm: Path | None) -> list[StageLines]:
    """Every stage of a kernel, from TTIR to what the device executes.

    nvdisasm -- NVIDIA's disassembler; None: a note says that SASS could not be read

    Lines of a user's kernel that torch.compile copied into a file of its own are named as the user's.
    Reads every artefact once and disassembles the cubin: about a second for a large kernel.
    """
    copied = copied_functions(run, compilation)
    disassemble = partial(disassembled, nvdisasm=nvdisasm) if nvdisasm else None
    return located_stages(run, compilation.target, artefacts(run, compilation), copied, disassemble)


def located_stages(
    run: Run,
    target: str,
    blobs: Mapping[str, Blob],
    copied: Sequence[CopiedFunction],
    disassemble: Disassemble | None,
) -> list[StageLines]:
    """Every stage of a kernel with these artefacts, like `stage_lines`.

    blobs       -- by file suffix
    copied      -- functions that are copies of the user's
    disassemble -- None: a note says that SASS could not be read
    """
    nvidia = target.startswith("cuda")
    located = [
        _stage(run, blobs, stage) for stage in ("ttir", "ttgir", "llir", "ptx" if nvidia else "amdgcn")
    ]
    located += [_sass(run, blobs, disassemble)] if nvidia else []
    located = [replace(one, located=of_user(one.located, copied)) for one in located]
    return [_without_callers(one) if _calls(located[2]) and not _calls(one) else one for one in located]


def _calls(stage: StageLines) -> bool:
    return any(len(stack) > 1 for one in stage.located for stack in one.stacks)


def _without_callers(stage: StageLines) -> StageLines:
    # PTX up to Triton 3.6's, which LLVM wrote without `inlined_at`
    note = "names no call sites: what was inlined stands under its own line, not under its caller's"
    return replace(stage, note=note) if stage.located else stage


def _stage(run: Run, blobs: Mapping[str, Blob], stage: str) -> StageLines:
    if stage not in blobs:
        begins = "there is none: the compilation begins with ttgir, as of a Gluon kernel"
        ended = "was not recorded: the compilation ended before"
        return StageLines(stage, note=begins if stage == "ttir" and "ttgir" in blobs else ended)
    text = run.text(blobs[stage])
    invented = invented_locations(text) if stage == "ptx" else 0
    note = f"{invented} .loc inside inline assembly left out: LLVM counts them on, line by line of its text"
    return StageLines(stage, located(stage, text), note if invented else "", text)


def _sass(run: Run, blobs: Mapping[str, Blob], disassemble: Disassemble | None) -> StageLines:
    if "cubin" not in blobs:
        return StageLines("sass", note="no cubin was recorded: the compilation ended before")
    if disassemble is None:
        return StageLines(
            "sass", note="no nvdisasm was found: install CUDA's, or name it in TRITON_NVDISASM_PATH"
        )
    text, error = disassemble(run.bytes(blobs["cubin"]))
    if error:
        return StageLines("sass", note=error)
    invented = invented_locations(run.text(blobs["ptx"])) if "ptx" in blobs else 0
    note = (
        "instructions of inline assembly can stand under lines that follow theirs: ptxas believes PTX's .loc"
    )
    return StageLines("sass", located("sass", text), note if invented else "", text)


def follow(stages: Sequence[StageLines], position: str) -> list[Thread]:
    """The code of one Python line in every stage, one thread for each call path through it.

    stages   -- as `stage_lines` gives them
    position -- "FILE:LINE"; the end of the file's path is enough

    Raises Problem if no instruction comes from the line, with the lines of that file that have some.
    """
    file, line = split_position(position)
    threads: dict[Stack, dict[str, list[Located]]] = {}
    for stage in stages:
        for one in stage.located:
            for stack in one.stacks:
                if any(frame.line == line and is_file(frame.file, file) for frame in stack):
                    threads.setdefault(stack, {}).setdefault(stage.stage, []).append(one)
    if not threads:
        stacks = {stack for stage in stages for one in stage.located for stack in one.stacks}
        frames = {frame for stack in stacks for frame in stack}
        raise Problem(f"nothing of this kernel comes from {position}", known_lines(frames, position))
    return [Thread(stack, by_stage) for stack, by_stage in threads.items()]


def is_file(path: str, end: str) -> bool:
    """True if a path ends with the parts of another one."""
    parts, wanted = PurePath(path).parts, PurePath(end).parts
    return parts[-len(wanted) :] == wanted


def known_lines(frames: Collection[Frame], position: str) -> str:
    """The lines of a file that became code; or the nearest of the user's files, if no line of it did.

    frames   -- of all code
    position -- "FILE:LINE"
    """
    file, _ = split_position(position)
    lines = sorted({frame.line for frame in frames if is_file(frame.file, file)})
    if lines:
        return f"lines of {file} that became code: {', '.join(map(str, lines))}"
    files = sorted({frame.file for frame in frames})
    files = [one for one in files if not is_library(one)]
    alike = get_close_matches(PurePath(file).name, {PurePath(one).name for one in files}, n=3)
    if near := [one for one in files if PurePath(one).name in alike]:
        return f"nearest: {', '.join(near)}"
    return f"files whose lines became code: {', '.join(files) or 'only those of libraries, or of no file'}"
