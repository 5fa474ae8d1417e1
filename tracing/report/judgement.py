"""The judgement of a run, as lines of plain text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tracing.analyze.graphs.changing_passes import ChangingPass, EarlierPass
from tracing.analyze.judge.judgement import (
    BEFORE_INDUCTOR,
    Finding,
    JudgedLaunch,
    LibraryOff,
    OutputOff,
    Overwritten,
    PassesOff,
    RunJudgement,
    SharedResult,
    TracedOff,
    WrongElements,
)
from tracing.model.numbers import number_text
from tracing.report.hand_written import UNKNOWN_EAGER, one_by_one, reference_text
from tracing.report.text import plural, some_lines
from tracing.store.graph_file import PythonLine

_NODES = 8  # maximum of nodes that are printed
_SHOWN = 2  # suspect passes of torch whose lines are printed; `tracing passes` shows those of more
_LISTED = 5  # launches, or parts of a graph, that are listed for one reason
_BECAUSE = ": no reference, because "


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
        yield from _accused(accused)
        if further := judgement.further:
            yield f"    likewise  {_by_kernel(further)}"
    for finding, calls in _of_calls(judgement.findings):
        yield from _finding(finding, judgement.undeclared)
        if also := _also_off(finding, judgement.findings):
            yield f"    also off  {_some(also)}"
        if calls > 1:
            yield f"    likewise  in {plural(calls - 1, 'later call')} of the graph"
    if judgement.laid_out:
        yield from _laid_out(judgement)
    elif judgement.suspects:
        yield from _suspected(judgement)
    elif judgement.status != 1:
        yield from _nothing_off(judgement)
    yield from _cleared(judgement)
    if judgement.other_contents:
        yield f"this is said of the new recording only, in which {judgement.other_contents}"
    yield from _counts(judgement)
    for command in next_commands:
        yield f"    next      {command}"


def _suspected(judgement: RunJudgement) -> Iterator[str]:
    suspects = judgement.suspects
    named = [f"{one.launch} {one.kernel}" for one in suspects]
    which = "launch" if len(suspects) == 1 else "one of launches"
    if judgement.forward_of_gradients:
        code = f"the backward formula of the code that makes {which} {_some(named)}"
        yield f"✗ only gradients differ from eager's; the suspect is {code}, or what it saves for it"
    else:
        yield f"✗ the results differ from eager's; the suspect is {which} {_some(named)}"
    own = {one.kernel for one in suspects if one.graph < 0}
    if own and not judgement.forward_of_gradients:
        them = "it" if len(own) == 1 else "them"
        yield f"    or        the program's code around {them}, where eager executes other code"
    if any(one.graph >= 0 and not one.nodes for one in suspects):  # in a graph that an operator calls
        yield "    or        the operator that executes it, or a graph pass: nothing judges its branches"
    if judgement.of_case:
        yield "    or        a step before Inductor's post-grad passes, as a decomposition: not judged"
    if len(own) > 1:
        yield f"    to know   which kernel it is: {one_by_one()}"
    if len(suspects) > 1:
        for one in filter(judgement.accesses_wrongly, suspects):
            launch = f"{one.launch} {one.kernel}"
            yield f"    most so   launch {launch}: it {judgement.wrong_accesses[launch]}"
    for one in suspects if len(suspects) > 1 or judgement.forward_of_gradients else ():
        reached = judgement.reached.get(one.launch)
        if reached is not None and reached.agreeing:
            names = _some(reached.agreeing)
            yield f"    less so   launch {one.launch} {one.kernel}: {names} depends on it, and agrees"
    them = "it" if len(suspects) == 1 else "them"
    right = [one for one in judgement.launches if one.verdict == "right" and one not in suspects]
    others = "; every other launch is right for its inputs" if right else ""
    yield f"    why       only eager's results check {them}{others}"


def _laid_out(judgement: RunJudgement) -> Iterator[str]:
    names = _some(judgement.laid_out)
    yield f"✗ only strides or dtypes differ from eager's, of {names}: no kernel chooses these"
    yield "    suspect   the code that allocates the result: the program's, or Inductor's"


def _cleared(judgement: RunJudgement) -> Iterator[str]:
    for one in judgement.cleared:
        reached = judgement.reached[one.launch]
        if reached.written:
            why = f"all that it wrote is {_some(reached.written)}, which agrees"
        elif reached.agreeing:
            why = f"only {_some(reached.agreeing)} depends on it, and agrees"
        else:
            why = f"only {_some(reached.others)} may depend on it, and nothing that differs"
        yield f"    cleared   launch {one.launch} {one.kernel}: {why}"


def _nothing_off(judgement: RunJudgement) -> Iterator[str]:
    if judgement.differs:
        why = "and no launch that was judged explains it"
        itself = "which gives another result each time itself"
        yield f"the results differ from eager, {why if judgement.eager_repeats else itself}"
    elif judgement.failed and not judgement.wrong_accesses:
        yield "no launch that was judged explains why it failed"
    judged = "every launch that was judged is right" if judgement.any_right else "no launch could be judged"
    if judgement.unchecked and judgement.of_case and not judgement.eager_known:
        yield f"{judged}; whether eager checks the hand-written {_some(judgement.unchecked)} is not known:"
        yield f"    to know   {UNKNOWN_EAGER}"
    elif judgement.unchecked:
        yield f"nothing checks the hand-written {_some(judgement.unchecked)}; {judged}"
        yield reference_text(len(judgement.unchecked), of_case=judgement.of_case)
    elif judgement.undecided:
        yield judged
        yield "the comparison with eager does not decide whether the results are right"
    elif judgement.less_precise and not judgement.differs:
        yield from _less_precise(judgement, judged)
    elif judgement.checked and not judgement.differs:
        also = f"{judged}; " if judgement.any_right else ""
        yield f"{also}eager's results agree, and check the hand-written {_some(judgement.checked)}"
    elif judgement.confirmed and not judgement.any_right and judgement.launches:
        yield f"{judged}; eager's results agree, and check all launches together"
    elif judgement.other_numbers and not judgement.any_right:
        yield f"{judged}; with eager's random numbers another compile agrees, whose kernels draw none:"
        yield f"nothing checks those that computed {_some(judgement.other_numbers)}"
    elif judgement.before_inductor_unknown:
        unknown = "whether a decomposition, pre-grad or joint pass is wrong"
        yield f"{judged}; {unknown} is not known for some results"
    else:
        yield judged


def _less_precise(judgement: RunJudgement, judged: str) -> Iterator[str]:
    also = f"{judged}; " if judgement.any_right else ""
    code = f"the hand-written {_some(judgement.checked)}" if judgement.checked else "the program's code"
    yield f"{also}eager's results agree within rounding only: {_some(judgement.less_precise)}"
    yield f"    look at   {code}: an accumulator or intermediate of fewer bits makes results less precise,"
    yield "              and so may masked elements that enter a sum with a value other than 0"


def _accused(launch: JudgedLaunch) -> Iterator[str]:
    yield f"✗ launch {launch.launch} {launch.kernel} is off"
    if launch.others or launch.operators:
        others = [f"launch {', '.join(map(str, launch.others))}"] if launch.others else []
        either = ", or ".join([*others, *launch.operators])
        yield f"    or        {either}: no node stands for the partial results in between"
    if launch.graph < 0:
        yield "    against   Triton's interpreter, on the same inputs"
    else:
        yield f"    graph     {launch.graph}: {_some(launch.nodes)}"
    if launch.why:
        yield f"    cause     {launch.why}"
    yield from _lines(launch.lines)
    for wrong in launch.wrong:
        yield from _elements(wrong, "rounding in this launch")


def _of_calls(findings: Sequence[Finding]) -> Iterator[tuple[Finding, int]]:
    # the first finding of each kind, and the number of calls of its graph that have it
    calls: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        calls.setdefault((_KINDS[type(one)], str(one.graph), *_subject(one)), []).append(one)
    traced: dict[int, TracedOff] = {}  # the first one of each graph: one cause is likely for all
    for first, *others in calls.values():
        if not isinstance(first, TracedOff) or traced.setdefault(first.graph, first) is first:
            yield first, 1 + len(others)


def _also_off(finding: Finding, findings: Sequence[Finding]) -> Sequence[str]:
    # the other results of the graph that are off
    if isinstance(finding, TracedOff):
        traced = (one for one in findings if isinstance(one, TracedOff))
        names = dict.fromkeys(one.wrong.name for one in traced if one.graph == finding.graph)
        return [one for one in names if one != finding.wrong.name]
    return () if isinstance(finding, LibraryOff | SharedResult) else finding.also


def _subject(finding: Finding) -> tuple[str, ...]:
    if isinstance(finding, SharedResult):
        return finding.result, finding.other
    wrong = (finding.wrong.name, finding.wrong.buffer) if finding.wrong is not None else ()
    return (*wrong, finding.buffer, *finding.kernels) if isinstance(finding, Overwritten) else wrong


def _finding(finding: Finding, undeclared: Sequence[str] = ()) -> Iterator[str]:
    match finding:
        case SharedResult():
            yield from _shared(finding)
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
            others = f"or {_some(finding.others)}, whose result no launch reads, " if finding.others else ""
            yield f"✗ {finding.operator} is off, {others}{_library(finding)}"
            yield f"    graph     {finding.graph}: {finding.wrong.node}"
        case PassesOff():
            yield f"✗ Inductor's graph passes change {finding.wrong.name}"
            first = f"; the first node that differs is {finding.first}" if finding.first else ""
            yield f"    graph     {finding.graph}: {finding.wrong.node}{first}"
            yield from _passes(finding)
        case TracedOff():
            yield f"✗ {finding.wrong.name} is not what the graph that Dynamo traced computes"
            yield f"    graph     {finding.graph}: {finding.wrong.node}"
            yield from _before_inductor(finding)
            if finding.unjudged:
                yield f"    unjudged  {_some(finding.unjudged)}"
        case OutputOff():
            why = "each launch that was judged is right for its inputs"
            why = why if finding.complete else "the run lacks launches of this call"
            yield f"✗ {finding.wrong.name} is off, and {why}"
            yield f"    graph     {finding.graph}: {finding.wrong.node}"
            if finding.unjudged:
                yield f"    unjudged  {_some(finding.unjudged)}"
            for one in finding.rounded:
                launch = f"launch {one.launch} {one.kernel}"
                yield f"    rounding  {launch} does not round each node's value, as ATen does:"
                yield f"              ATen gives another {_some(one.nodes)}"
    yield from _lines(finding.lines)
    if finding.wrong is not None:
        yield from _elements(finding.wrong, "rounding")


def _shared(finding: SharedResult) -> Iterator[str]:
    yield f"✗ {finding.result} shares memory with {finding.other}, and should not"
    yield f"    graph     {finding.graph}: {finding.node} is no view of {finding.other_node}"
    yield f"    cause     {finding.cause}"
    if finding.cause == BEFORE_INDUCTOR:
        yield from _before_inductor(finding)
    yield "    so        a program that writes to one of them changes both"
    yield from _lines(finding.lines)


def _before_inductor(finding: TracedOff | SharedResult) -> Iterator[str]:
    if finding.passes is None:
        yield "    suspect   a pre-grad pass, a decomposition or a joint pass: the run did not record them"
        return
    suspects = [one for one in finding.passes if not one.cleared]
    cleared = [*dict.fromkeys(one.name for one in finding.passes if one.cleared)]
    for one in sorted(suspects, key=lambda one: not one.code):  # those of the program first
        yield f"    suspect   {one.name}{_code(one)} {_change(one)}"
        if one.code or len(suspects) <= _SHOWN:
            yield from _graph_lines(one)
    result = finding.wrong.name if isinstance(finding, TracedOff) else finding.result
    result = f"the {result}" if result.startswith("gradient") else result
    of_dtype = isinstance(finding, TracedOff) and finding.wrong.dtype
    how = f"the dtype and shape of {result}" if of_dtype else f"how {result} is computed"
    if any(one.changes_dtype for one in suspects):
        yield f"    so        this pass gives {result} its wrong dtype"
    elif suspects:
        yield "    or        a decomposition"
    else:
        what = how if cleared else "the graph"
        yield f"    suspect   a decomposition, as no pre-grad or joint pass changes {what}"
    if cleared:
        yield f"    cleared   {_some(cleared)}: no change of {how}"


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
        yield from (f"    {name:9} {line}" for line in lines[:_NODES])
        if lines[_NODES:]:
            yield f"              and {plural(len(lines) - _NODES, 'more node')}"


def _library(finding: LibraryOff) -> str:
    if finding.readers:
        return f"or its result was written by {_some(finding.readers)}, undeclared"
    if "::" not in finding.operator:
        return "or a launch of a graph that it executes"
    if finding.repeats_right:
        return (
            "but right if repeated: generated code calls another operator, or with other arguments or "
            "contents, or overwrites its result, or it is not deterministic"
        )
    return "an operator of a library"


def _misread(finding: Overwritten) -> str:
    output = finding.reader.startswith("output")
    if finding.instead:
        reads, read = ("is", "be") if output else ("reads", "read")
        return f"{finding.reader} {reads} {finding.instead}, and should {read} {finding.buffer}"
    if output and finding.by is None and not finding.by_kernel:
        return f"{finding.reader} is not {finding.buffer}, or something overwrites it after it was computed"
    by = f"launch {finding.by} {finding.by_kernel}" if finding.by is not None else finding.by_kernel
    return f"{by or 'something'} overwrites {finding.buffer}, which {finding.reader} still needs"


def _passes(finding: PassesOff) -> Iterator[str]:
    if not finding.passes:
        yield "    passes    Inductor's post-grad passes, or the program's own; the run did not record them"
    for one in finding.passes:
        which = "pass" if len(finding.passes) == 1 else "one of"
        what = f"how {one.node} is computed" if one.node else "the graph"
        yield f"    {which:9} {one.name}{_code(one)} changes {what}"
        yield from _graph_lines(one)


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


def _by_kernel(launches: Sequence[JudgedLaunch]) -> str:
    numbers: dict[str, list[str]] = {}
    for one in launches:
        numbers.setdefault(one.kernel, []).append(str(one.launch))
    titles = (
        f"{kernel} ({'launches' if at[1:] else 'launch'} {_some(at)})" for kernel, at in numbers.items()
    )
    return _some([*titles])


def _some(names: Sequence[str]) -> str:
    further = len(names) - _NODES
    return ", ".join(names[:_NODES]) + (f" and {further} more" if further > 0 else "")


def _counts(judgement: RunJudgement) -> Iterator[str]:
    count = Counter(one.verdict for one in judgement.launches)
    judged = sum(count.values()) - count["no reference"]
    misread = any(isinstance(one, Overwritten) and one.kernels[0] for one in judgement.findings)
    right = "right for what they read" if misread else "right"
    partly = [one for one in judgement.launches if one.partly]
    whole = count["right"] - len(partly)
    parts = [f"{whole} {right}"] if whole else []
    parts += [f"{len(partly)} {right} in part"] if partly else []
    parts += [f"{count['off']} off"] if count["off"] else []
    if count["inputs wrong"]:
        parts.append(f"{count['inputs wrong']} right, with inputs that were wrong already")
    of = plural(len(judgement.launches), "launch")
    yield f"{judged} of {of} judged{': ' + ', '.join(parts) if parts else ''}"
    reasons: dict[str, list[str]] = {}
    for one in judgement.launches:
        if one.verdict == "no reference":
            reasons.setdefault(one.why, []).append(f"{one.launch} {one.kernel}")
    for why, launches in reasons.items():
        yield f"not covered: launch {_listed(launches)}{_BECAUSE}{why}"
    yield from _not_covered(
        [f"{_some(one.unjudged)} of launch {one.launch} {one.kernel}{_BECAUSE}{one.why}" for one in partly]
    )
    yield from _not_covered(judgement.not_covered)


def _not_covered(texts: Sequence[str]) -> Iterator[str]:
    # what one reason leaves out is one line
    reasons: dict[str, list[str]] = {}
    for text in texts:
        what, _, why = text.partition(_BECAUSE)
        reasons.setdefault(why, []).append(what)
    for why, parts in reasons.items():
        if why:
            yield f"not covered: {_listed(parts)}{_BECAUSE}{why}"
        else:
            yield from (f"not covered: {part}" for part in parts)


def _listed(names: Sequence[str]) -> str:
    further = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + further


def judgement_json(judgement: RunJudgement) -> dict[str, Any]:
    """The judgement as JSON; keys as in docs/json.md."""
    launches = [_plain(one) for one in judgement.launches]
    findings = [{"kind": _KINDS[type(one)], **_plain(one)} for one in judgement.findings]
    accused = judgement.accused
    return {
        "status": judgement.status,
        "accused": None if accused is None else accused.launch,
        "undeclared": [*judgement.undeclared],
        "suspects": [one.launch for one in judgement.suspects],
        "only_gradients": judgement.forward_of_gradients,
        "laid_out": [*judgement.laid_out],
        "unchecked": judgement.unchecked,
        "less_precise": [*judgement.less_precise],
        "other_contents": judgement.other_contents,
        "launches": launches,
        "findings": findings,
        "not_covered": [*judgement.not_covered],
    }


_KINDS = {
    Overwritten: "overwritten",
    LibraryOff: "library",
    PassesOff: "graph passes",
    OutputOff: "output",
    SharedResult: "shared memory",
    TracedOff: "traced graph",
}


def _plain(one: object) -> dict[str, Any]:
    def special(value: object) -> Any:
        return str(value) if isinstance(value, complex) else value

    plain: dict[str, Any] = msgspec.to_builtins(one, enc_hook=special)
    plain["lines"] = [
        {"file": line.file, "line": line.line, "function": line.function, "code": line.code}
        for line in getattr(one, "lines", ())
    ]
    return plain
