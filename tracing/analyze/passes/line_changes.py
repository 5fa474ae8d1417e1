"""Find what became of a Python line: its kernel, its operations there, the passes that changed them.

The line is one of the kernel's own source, or of a model that Inductor compiled: such a line became a whole
kernel, fused with others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from tracing.analyze.graphs.line_kernels import compiled_lines, line_kernels, split_position, without_line
from tracing.analyze.passes.compilations import compilation
from tracing.analyze.passes.copied_lines import copied_functions, of_user
from tracing.analyze.passes.locations import Frame, Stack, located
from tracing.analyze.passes.pass_table import kernel_passes, passes_of
from tracing.analyze.passes.source_map import StageLines, Thread, follow, is_file, known_lines
from tracing.errors import Problem
from tracing.model import Blob, CallSite, Compilation, CopiedFunction, PassRecord
from tracing.model.first_names import first_names
from tracing.store import Run

_ALIAS = re.compile(r"^(#[A-Za-z_]\w*) = (?!loc\()(.+)$", re.M)
_USE = re.compile(r"#[A-Za-z_]\w*")
_SHOWN = 3  # names of operators whose line is not known
_VALUE = re.compile(r"%[\w$.#-]+(?::\d+)?")


def compilation_of_line(run: Run, kernel: str | None, position: str) -> Compilation:
    """The compilation that a user means by a line: the launched one that computes it, unless one is named.

    In a run that launched nothing, any compilation may be meant.

    Raises Problem if several kernels compute the line, or none is named and none does.
    """
    compiled = kernel_passes(run)
    if kernel is not None or not compiled:
        return compilation(run, kernel)
    known = [one.compilation for one in compiled if one.launched] or [one.compilation for one in compiled]
    names = line_kernels(run, position)
    meant = [one for one in known if one.kernel_name in names or _has(run, one, position)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        choices = [f"--kernel {one.hash[:12]}  {one.kernel_name}" for one in meant]
        problem = f"{position} became {len(meant)} kernels"
        raise Problem(problem, "\n  ".join(["choose one:", *choices]))
    frames = {frame for one in known for stack in _stacks(run, one) for frame in stack}
    frames |= {Frame(*line) for line in compiled_lines(run)}
    known_here = known_lines(frames, position)
    if is_call(run, position):
        calls = f"it calls compiled code: `tracing show {quote(str(run.path))}` shows which kernels"
        known_here = f"{calls}; {known_here}"
    if unknown := without_line(run):
        raise _unknown(f"a kernel of {run.path} computes {position}", unknown, known_here)
    raise Problem(f"no kernel of {run.path} computes {position}", known_here)


def _unknown(what: str, without: Sequence[str], remedy: str) -> Problem:
    names = first_names(without, _SHOWN)
    return Problem(f"whether {what} is not known: torch kept no line of {names}", remedy)


def is_call(run: Run, position: str) -> bool:
    """True if compiled code or a kernel was called at a line."""
    file, line = split_position(position)
    sites = (one for one in run.records(CallSite) if not one.of_operation)
    return any(one.line == line and is_file(one.file, file) for one in sites)


def follow_line(run: Run, chosen: Compilation, stages: Sequence[StageLines], position: str) -> list[Thread]:
    """The code of a line in every stage: of a line of the kernel, or of the kernel that a model's line is in.

    Raises Problem if nothing of the kernel comes from the line.
    """
    own = _own_lines(run, chosen, position)
    if own is None:
        return _followed(run, chosen, stages, position)
    there = {frame for stage in stages for one in stage.located for stack in one.stacks for frame in stack}
    left = [line for line in own if Frame(*split_position(line)) in there]
    threads = [thread for line in left for thread in follow(stages, line)]
    return list({thread.stack: thread for thread in threads}.values())


def _followed(run: Run, chosen: Compilation, stages: Sequence[StageLines], position: str) -> list[Thread]:
    try:
        return follow(stages, position)
    except Problem as problem:
        name = chosen.kernel_name
        if unknown := without_line(run, name):
            raise _unknown(f"{name} computes {position}", unknown, problem.remedy) from None
        raise


def is_of_model(run: Run, chosen: Compilation, position: str) -> bool:
    """True if a line is one of a model: then the whole kernel that computes it is followed."""
    return _own_lines(run, chosen, position) is not None


def changing_passes(run: Run, chosen: Compilation, position: str) -> list[PassRecord]:
    """The passes that changed the operations of a line, in order: their names, types, layouts or number.

    Raises Problem if nothing of the kernel comes from the line.
    Cost: reads the IR on both sides of each pass that changed anything, some 10 ms a pass.
    """
    own = _own_lines(run, chosen, position)
    if own is None and not _has(run, chosen, position):
        remedy = f"`tracing line {run.path} {position} --kernel {chosen.hash[:12]}` names its lines"
        if unknown := without_line(run, chosen.kernel_name):
            raise _unknown(f"{chosen.kernel_name} computes {position}", unknown, remedy)
        raise Problem(f"nothing of {chosen.kernel_name} comes from {position}", remedy)
    lines = [split_position(one) for one in ([position] if own is None else own)]
    copied = copied_functions(run, chosen)

    def operations(blob: Blob) -> Counter[str]:
        return _operations(run.text(blob), lines, copied)

    return [
        one
        for one in passes_of(run, chosen)
        if one.changed and one.after is not None and operations(one.before) != operations(one.after)
    ]


def _own_lines(run: Run, chosen: Compilation, position: str) -> list[str] | None:
    # of a model's line, the lines of the file that Inductor wrote for the kernel, or that the program's own
    # kernel is in; None: not of a model
    if _has(run, chosen, position) or chosen.kernel_name not in line_kernels(run, position):
        return None
    files = {copy.user_file for copy in copied_functions(run, chosen)}
    files |= {split_position(chosen.file)[0]} if chosen.file else set()
    frames = {frame for stack in _stacks(run, chosen) for frame in stack if frame.file in files}
    return [f"{frame.file}:{frame.line}" for frame in sorted(frames, key=lambda one: one.line)]


def _has(run: Run, chosen: Compilation, position: str) -> bool:
    file, line = split_position(position)
    stacks = _stacks(run, chosen)
    return any(frame.line == line and is_file(frame.file, file) for stack in stacks for frame in stack)


def _stacks(run: Run, chosen: Compilation) -> Iterator[Stack]:
    operations = of_user(located("ttir", run.text(chosen.source)), copied_functions(run, chosen))
    return (stack for one in operations for stack in one.stacks)


def _operations(
    text: str, lines: Sequence[tuple[str, int]], copied: Sequence[CopiedFunction]
) -> Counter[str]:
    # those of the lines, without the numbers of values, and with layouts in full
    aliases = dict(_ALIAS.findall(text))
    counted: Counter[str] = Counter()
    for one in of_user(located("ttir", text), copied):
        frames = [frame for stack in one.stacks for frame in stack]
        if any(frame.line == line and is_file(frame.file, file) for frame in frames for file, line in lines):
            whole = _USE.sub(lambda match: aliases.get(match[0], match[0]), one.text)
            counted[_VALUE.sub("%", whole)] += 1
    return counted
