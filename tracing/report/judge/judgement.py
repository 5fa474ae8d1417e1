"""The judgement of a run, as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracing.analyze.judge.findings import JudgedLaunch
from tracing.analyze.judge.judgement import RunJudgement
from tracing.model.first_names import first_names
from tracing.report.judge.by_eager import (
    cleared_text,
    laid_out_text,
    nothing_off_text,
    suspects_text,
    unchecked_backwards_text,
)
from tracing.report.judge.coverage import coverage_text
from tracing.report.judge.findings import accused_text, also_off, finding_text, of_calls
from tracing.report.text import plural


def judgement_text(judgement: RunJudgement, next_commands: Sequence[str]) -> Iterator[str]:
    """The findings, the judged and unjudged launches, and the next commands."""
    accused, outcome = judgement.accused, judgement.outcome
    if outcome is not None and judgement.failed:
        yield f"the {'case' if judgement.of_case else 'program'} failed: {outcome.detail}"
    for effect in judgement.undeclared:
        yield f"✗ {effect}"
    if judgement.undeclared:
        yield "    so        torch.compile, which trusts it, may order, repeat or allocate wrongly"
        yield "    mend      name a written argument in `mutates_args`; return a clone instead of an input;"
        yield "              let the fake implementation return the operator's dtype, shape and strides"
    if accused is not None:
        yield from accused_text(accused)
        if further := judgement.further:
            yield f"    likewise  {_by_kernel(further)}"
    for finding, calls in of_calls(judgement.findings):
        yield from finding_text(finding, judgement.undeclared)
        if also := also_off(finding, judgement.findings):
            yield f"    also off  {first_names(also)}"
        if calls > 1:
            yield f"    likewise  in {plural(calls - 1, 'later call')} of the graph"
    if judgement.laid_out:
        yield from laid_out_text(judgement)
    elif judgement.suspects:
        yield from suspects_text(judgement)
    elif judgement.status != 1:
        yield from nothing_off_text(judgement)
        yield from unchecked_backwards_text(judgement)
    yield from cleared_text(judgement)
    if judgement.other_contents:
        yield f"this is said of the new recording only, in which {judgement.other_contents}"
    yield from coverage_text(judgement)
    for command in next_commands:
        yield f"    next      {command}"


def _by_kernel(launches: Sequence[JudgedLaunch]) -> str:
    numbers: dict[str, list[str]] = {}
    for one in launches:
        numbers.setdefault(one.kernel, []).append(str(one.launch))
    at = {kernel: f"{'launches' if at[1:] else 'launch'} {first_names(at)}" for kernel, at in numbers.items()}
    return first_names([f"{kernel} ({launches})" for kernel, launches in at.items()])
