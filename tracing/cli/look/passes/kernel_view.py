"""Answer a question about the passes of one kernel: select the passes and operations that it names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from tracing import store
from tracing.analyze.passes import pass_table as analysis
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.llvm import instructions, readable
from tracing.analyze.passes.operations import counts, without_locations
from tracing.analyze.passes.pass_table import P, PassStep
from tracing.analyze.passes.replacements import ReplacedOperation, replacements
from tracing.cli.look.passes.llvm import derived_llvm
from tracing.cli.look.passes.question import PassQuestion, PassSide
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.report.passes import passes as report
from tracing.report.passes import passes_json as data


def kernels_json(run: store.Run, asked: PassQuestion) -> dict[str, Any]:
    """The passes of every kernel, or of the one that is asked for."""
    known = compilations(run)
    kernels = known if asked.kernel is None else [chosen_kernel(run, asked.kernel)]
    return data.passes_json(
        run, [(one, [*filter(asked.wants, analysis.passes_of(run, one))]) for one in kernels]
    )


def answer_json(run: store.Run, chosen: Compilation, asked: PassQuestion) -> dict[str, Any]:
    """One pass, the history of operations, or LLVM's passes."""
    answer = data.kernel_json(run, chosen)
    if asked.llvm:
        ran = derived_llvm(run, chosen, asked.seconds)
        answer |= {"failure": ran.failure, "differs": list(ran.differs)}
        return {**answer, **_passes_json(run, ran.passes, asked)}
    return {**answer, **_passes_json(run, analysis.passes_of(run, chosen), asked)}


def _passes_json(run: store.Run, records: Sequence[P], asked: PassQuestion) -> dict[str, Any]:
    count = instructions if asked.llvm else counts
    if asked.which is not None and asked.op is None:
        one = analysis.find_pass(records, asked.which, asked.stage)
        (step,) = analysis.steps(run, [one], count)
        return data.pass_json(step, ir=ir_of(run, one, asked.side), diff=_diff(run, one, asked))
    steps = asked.among(analysis.steps(run, selected(records, asked), count))
    wanted = wanted_operations(steps, asked.op)
    if wanted is None:
        return {"passes": [data.record_json(step.record) for step in steps]}
    return data.history_json(analysis.history(steps, wanted), became_of(run, steps, wanted))


def _diff(run: store.Run, one: analysis.AnyPass, asked: PassQuestion) -> str | None:
    if asked.side is not None or not one.before or not one.after:
        return None
    plain = readable if asked.llvm else without_locations
    lines = report.diff_text(run.text(one.before), run.text(one.after), asked.locations, plain)
    return "".join(f"{line}\n" for line in lines)


def ir_of(run: store.Run, one: analysis.AnyPass, side: PassSide | None) -> str | None:
    """The IR on one side of a pass; None: no side is asked for."""
    if side is None:
        return None
    blob = one.before if side == "before" else one.after
    if blob is None:
        raise Problem(f"{one.name} left no IR: it did not end", "ask for `--before`")
    return run.text(blob)


def selected(records: Sequence[P], asked: PassQuestion) -> list[P]:
    """The passes of a kernel that the options name; raises Problem if there are none."""
    if asked.which is not None:
        return [analysis.find_pass(records, asked.which, asked.stage)]
    chosen = [one for one in records if asked.stage in (None, one.stage)]
    if not chosen and records:
        stages = ", ".join(dict.fromkeys(one.stage for one in records))
        raise Problem(
            f"this kernel has no pass of stage {asked.stage}", f"stages that were recorded: {stages}"
        )
    return chosen


def became_of(
    run: store.Run, steps: Sequence[PassStep[P]], wanted: set[str]
) -> dict[tuple[int, str], ReplacedOperation]:
    """The replacements of operations that MLIR passes removed, by the pass's index and the name."""
    mlir: list[PassStep[PassRecord]] = [
        PassStep(step.record, step.before, step.after)
        for step in steps
        if isinstance(step.record, PassRecord)
    ]
    return replacements(run, mlir, wanted)


def wanted_operations(steps: Sequence[PassStep[P]], op: str | None) -> set[str] | None:
    """The operations whose history is asked for; None: no such question.

    op -- a glob of their names

    Raises Problem, with near names, if no pass has such an operation.
    """
    if op is None:
        return None
    occurring = {name for step in steps for name in (*step.before, *step.after)}
    wanted = {name for name in occurring if fnmatchcase(name, op)}
    if not wanted:
        near = get_close_matches(op, sorted(occurring), n=3, cutoff=0.5) or sorted(occurring)
        raise Problem(f"no operation of these passes is {op}", f"there are: {', '.join(near)}")
    return wanted
