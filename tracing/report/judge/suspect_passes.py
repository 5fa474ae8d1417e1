"""The graph passes that may have made a result wrong, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracing.analyze.graphs.changing_passes import ChangingPass, EarlierPass
from tracing.analyze.judge.findings import PassesOff, SharedResult, TracedOff
from tracing.model.first_names import first_names
from tracing.report.text import plural

_LINES = 8  # of a graph that are printed
_SHOWN = 2  # suspect passes of torch whose lines are printed; `tracing passes` shows those of more


def before_inductor_text(finding: TracedOff | SharedResult) -> Iterator[str]:
    """What precedes Inductor's post-grad passes: suspects, and passes that are cleared."""
    result = finding.wrong.name if isinstance(finding, TracedOff) else finding.result
    decomposition = _decomposition(finding.operators if isinstance(finding, TracedOff) else ())
    partitioner = ", the partitioner" if result.startswith("gradient") else ""
    comma = "," if partitioner or "," in decomposition else ""
    otherwise = f"{decomposition}{partitioner}{comma} or another step of AOTAutograd"
    if finding.passes is None:
        yield f"    suspect   a pre-grad or joint pass, {otherwise}: the run did not record them"
        return
    suspects = [one for one in finding.passes if not one.cleared]
    cleared = [*dict.fromkeys(one.name for one in finding.passes if one.cleared)]
    for one in sorted(suspects, key=lambda one: not one.code):  # those of the program first
        yield f"    suspect   {one.name}{_code(one)} {_change(one)}"
        if one.code or len(suspects) <= _SHOWN:
            yield from _graph_lines(one)
    result = f"the {result}" if result.startswith("gradient") else result
    of_dtype = isinstance(finding, TracedOff) and finding.wrong.dtype
    how = f"the dtype and shape of {result}" if of_dtype else f"how {result} is computed"
    if any(one.changes_dtype for one in suspects):
        yield f"    so        this pass gives {result} its wrong dtype"
    elif suspects:
        yield f"    or        {otherwise}"
    else:
        what = how if cleared else "the graph"
        yield f"    suspect   {otherwise}, as no pre-grad or joint pass changes {what}"
    if cleared:
        yield f"    cleared   {first_names(cleared)}: no change of {how}"


def _decomposition(operators: Sequence[str]) -> str:
    first, *before = operators or ("",)
    read = f", or of {first_names(before)}, which it reads" if before else ""
    return f"the decomposition of {first}{read}" if first else "a decomposition"


def _change(one: EarlierPass) -> str:
    if one.before and one.after:
        return f"changes {plural(len(one.before), 'line')} of the graph to {len(one.after)}"
    if one.before or one.after:
        lines = plural(len(one.before or one.after), "line")
        return f"removes {lines} of the graph" if one.before else f"adds {lines} to the graph"
    return "changes the order of nodes"


def _code(one: ChangingPass | EarlierPass) -> str:
    return f", {one.code}," if one.code else ""


def _graph_lines(one: ChangingPass | EarlierPass) -> Iterator[str]:
    for name, lines in (("before", one.before), ("after", one.after)):
        yield from (f"    {name:9} {line}" for line in lines[:_LINES])
        if lines[_LINES:]:
            yield f"              and {plural(len(lines) - _LINES, 'more node')}"


def passes_text(finding: PassesOff) -> Iterator[str]:
    """Inductor's post-grad passes that change what a graph computes."""
    if not finding.passes:
        yield "    passes    Inductor's post-grad passes, or the program's own; the run did not record them"
    for one in finding.passes:
        which = "pass" if len(finding.passes) == 1 else "one of"
        what = f"how {one.node} is computed" if one.node else "the graph"
        yield f"    {which:9} {one.name}{_code(one)} changes {what}"
        yield from _graph_lines(one)
