"""What is off, as text: a launch, a result of a graph, an operator of a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracing.analyze.judge.findings import (
    BEFORE_INDUCTOR,
    Finding,
    JudgedLaunch,
    LibraryOff,
    NotLaunched,
    OutputOff,
    Overwritten,
    PassesOff,
    SharedResult,
    TracedOff,
    WrongElements,
)
from tracing.model.first_names import first_names
from tracing.model.numbers import number_text
from tracing.report.judge.suspect_passes import before_inductor_text, passes_text
from tracing.report.text import plural, some_lines
from tracing.store.graph_file import PythonLine

KINDS = {  # of findings, in JSON
    Overwritten: "overwritten",
    LibraryOff: "library",
    NotLaunched: "not launched",
    PassesOff: "graph passes",
    OutputOff: "output",
    SharedResult: "shared memory",
    TracedOff: "traced graph",
}


def accused_text(launch: JudgedLaunch) -> Iterator[str]:
    """A launch that is off."""
    yield f"✗ launch {launch.launch} {launch.kernel} is off"
    if launch.others or launch.operators:
        others = [f"launch {', '.join(map(str, launch.others))}"] if launch.others else []
        either = ", or ".join([*others, *launch.operators])
        yield f"    or        {either}: no node stands for the partial results in between"
    if launch.graph < 0:
        yield "    against   Triton's interpreter, on the same inputs"
    else:
        yield f"    graph     {launch.graph}: {first_names(launch.nodes)}"
    if launch.why:
        yield f"    cause     {launch.why}"
    yield from _lines(launch.lines)
    for wrong in launch.wrong:
        yield from _elements(wrong, "rounding in this launch")


def of_calls(findings: Sequence[Finding]) -> Iterator[tuple[Finding, int]]:
    """The first finding of each kind, and the number of calls of its graph that have it."""
    calls: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        calls.setdefault((KINDS[type(one)], str(one.graph), *_subject(one)), []).append(one)
    traced: dict[int, TracedOff] = {}  # the first one of each graph: one cause is likely for all
    for first, *others in calls.values():
        if not isinstance(first, TracedOff) or traced.setdefault(first.graph, first) is first:
            yield first, 1 + len(others)


def also_off(finding: Finding, findings: Sequence[Finding]) -> Sequence[str]:
    """The other results of its graph that are off."""
    if isinstance(finding, TracedOff):
        traced = (one for one in findings if isinstance(one, TracedOff))
        names = dict.fromkeys(one.wrong.name for one in traced if one.graph == finding.graph)
        return [one for one in names if one != finding.wrong.name]
    return () if isinstance(finding, LibraryOff | NotLaunched | SharedResult) else finding.also


def _subject(finding: Finding) -> tuple[str, ...]:
    if isinstance(finding, SharedResult):
        return finding.result, finding.other
    if isinstance(finding, NotLaunched):
        return finding.kernel, *finding.nodes
    wrong = (finding.wrong.name, finding.wrong.buffer) if finding.wrong is not None else ()
    return (*wrong, finding.buffer, *finding.kernels) if isinstance(finding, Overwritten) else wrong


def finding_text(finding: Finding, undeclared: Sequence[str]) -> Iterator[str]:
    """A finding, with its cause and its elements; `undeclared`: as of `RunJudgement`."""
    match finding:
        case SharedResult():
            yield from _shared(finding)
            return
        case NotLaunched():
            never, other = finding.elsewhere is None, f"launch {finding.elsewhere} of another call"
            where = "" if never else " in a call of its graph"
            yield f"✗ {finding.name} was not launched{where}"
            yield f"    graph     {finding.graph}: {first_names(finding.nodes)}"
            makes = "has no call of it" if never else f"makes {other}"
            yield f"    cause     Inductor's generated code, which {makes}"
            yield from _lines(finding.lines)
            return
        case Overwritten():
            yield f"✗ {_misread(finding)}"
            node = finding.node or "another value"
            if finding.instead:
                yield f"    graph     {finding.graph}"
            else:
                should = "keep its value" if node == finding.buffer else f"hold {node}"
                yield f"    graph     {finding.graph}: {finding.buffer} should {should}"
            unseen = undeclared if finding.by is None else ()
            yield f"    cause     {'; '.join(unseen) or finding.cause}"
        case LibraryOff():
            yield f"✗ {finding.operator} is off, {_library(finding)}"
            if finding.others:
                yield f"    or        {first_names(finding.others)}, whose result no launch reads"
            yield f"    graph     {finding.graph}: {finding.wrong.node}"
            if _is_called_wrongly(finding):
                does = "calls another operator, passes wrong inputs, or overwrites the result"
                yield f"    cause     generated code: it {does}"
                yield f"    or        {finding.operator} itself, if it is not deterministic"
        case PassesOff():
            yield f"✗ Inductor's graph passes change {finding.wrong.name}"
            first = f"; the first node that differs is {finding.first}" if finding.first else ""
            yield f"    graph     {finding.graph}: {finding.wrong.node}{first}"
            yield from passes_text(finding)
        case TracedOff():
            yield f"✗ {finding.wrong.name} is not what the graph that Dynamo traced computes"
            first = f"; the first node that differs is {finding.first}" if finding.first else ""
            yield f"    graph     {finding.graph}: {finding.wrong.node}{first}"
            yield from before_inductor_text(finding)
            if finding.unjudged:
                yield f"    unjudged  {first_names(finding.unjudged)}"
        case OutputOff():
            why = "each launch that was judged is right for its inputs"
            why = why if finding.launched else "no launch was seen that computes it"
            why = why if finding.complete else "the run lacks launches of this call"
            yield f"✗ {finding.wrong.name} is off, and {why}"
            yield f"    graph     {finding.graph}: {finding.wrong.node}"
            if finding.unjudged:
                yield f"    unjudged  {first_names(finding.unjudged)}"
            for one in finding.rounded:
                launch = f"launch {one.launch} {one.kernel}"
                yield f"    rounding  {launch} does not round each node's value, as ATen does:"
                yield f"              ATen gives another {first_names(one.nodes)}"
    yield from _lines(finding.lines)
    if finding.wrong is not None:
        yield from _elements(finding.wrong, "rounding")


def _shared(finding: SharedResult) -> Iterator[str]:
    yield f"✗ {finding.result} shares memory with {finding.other}, and should not"
    yield f"    graph     {finding.graph}: {finding.node} is no view of {finding.other_node}"
    yield f"    cause     {finding.cause}"
    if finding.cause == BEFORE_INDUCTOR:
        yield from before_inductor_text(finding)
    yield "    so        a program that writes to one of them changes both"
    yield from _lines(finding.lines)


def _library(finding: LibraryOff) -> str:
    if finding.readers:
        return f"or its result was written by {first_names(finding.readers)}, undeclared"
    if "::" not in finding.operator:
        return "or a launch of a graph that it executes"
    return "but right if repeated" if finding.repeats_right else "an operator of a library"


def _is_called_wrongly(finding: LibraryOff) -> bool:
    return finding.repeats_right and not finding.readers and "::" in finding.operator


def _misread(finding: Overwritten) -> str:
    output = finding.reader.startswith("output")
    if finding.instead:
        reads, read = ("is", "be") if output else ("reads", "read")
        return f"{finding.reader} {reads} {finding.instead}, and should {read} {finding.buffer}"
    if output and finding.by is None and not finding.by_kernel:
        return f"{finding.reader} is not {finding.buffer}, or something overwrites it after it was computed"
    by = f"launch {finding.by} {finding.by_kernel}" if finding.by is not None else finding.by_kernel
    return f"{by or 'something'} overwrites {finding.buffer}, which {finding.reader} still needs"


def _lines(lines: Sequence[PythonLine]) -> Iterator[str]:
    yield from (f"    at        {line}" for line in some_lines(lines))


def _elements(wrong: WrongElements, rounding: str) -> Iterator[str]:
    index = ", ".join(map(str, wrong.index))
    of = plural(wrong.of, "element")
    which = f"{wrong.count} of {of}" if wrong.count else f"{of} on average, and none by itself"
    yield f"    wrong     {wrong.name} ({wrong.buffer}, {wrong.node}): {which}"
    if wrong.dtype:
        yield f"    dtype     {wrong.dtype}"
        return
    actual, exact = number_text(wrong.value), number_text(wrong.reference)
    yield f"    worst     [{index}] is {actual}, and should be {exact}"
    if not wrong.count:
        yield f"    distance  {wrong.mean:.2g} roundings on average; {rounding} explains {wrong.typical:g}"
    elif wrong.explained is not None:
        apart = abs(wrong.value - wrong.reference)
        yield f"    distance  {apart:.3g}; {rounding} explains {wrong.explained:.2g}"
