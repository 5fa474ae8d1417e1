"""The first NaN or inf of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor
from tracing.analyze.nonfinite.memory_contents import OldContents
from tracing.analyze.nonfinite.nonfinite_answer import NonFiniteAnswer
from tracing.analyze.nonfinite.nonfinite_elements import ranges
from tracing.analyze.nonfinite.nonfinite_operator import NonFiniteOperator
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin, Verb
from tracing.model import Digest, KernelLaunch
from tracing.model.numbers import number_text
from tracing.report.text import plural, some_lines, step_text, tensor_text

_SHOWN = 8  # events of a chain, ranges of elements
_VALUE = {"any": "NaN or inf", "nan": "NaN", "inf": "inf"}
_MADE = {"nan": "a NaN", "inf": "an inf"}
_NONE = {"any": "no NaN and no inf", "nan": "no NaN", "inf": "no inf"}
_FINITE = {
    "any": "every value that it reads is finite",
    "nan": "no value that it reads is NaN",
    "inf": "no value that it reads is infinite",
}


def nonfinite_text(
    answer: NonFiniteAnswer,
    elements: dict[str, list[int]],
    commands: Sequence[str],
    operators: Sequence[NonFiniteOperator] = (),
) -> Iterator[Text]:
    """The answer, line by line.

    elements -- by argument: the indices of non-finite elements, if known
    commands -- to type next
    operators -- of those that the launch computes, which make the value; (): they are not known
    """
    if answer.origin is not None:
        yield from _origin(answer.origin, answer.kind, elements, answer.lacking, operators)
    elif answer.status == 0:
        counts = f"{plural(answer.launches, 'launch')}, {plural(answer.operators, 'operator call')}"
        yield Text.assemble(("✓", "green"), f" {_NONE[answer.kind]}: {counts}")
    elif not (answer.undecided or answer.reads or answer.later) and answer.digested:
        yield Text(f"{_NONE[answer.kind]} in what has digests, {plural(answer.launches, 'launch')}")
    if answer.later is not None:
        makes = f"makes {later_text(answer)}: {_FINITE[answer.kind]}"
        yield Text.assemble((f"✗ {title(answer.later)}", "bold red"), f" {makes}")
        if answer.later.source.site is not None:
            yield Text(f"    at        {answer.later.source.site}")
    before = [*undecided_text(answer), *map(str, answer.reads)]
    for line in dict.fromkeys((*before, *answer.unknown)):
        what = "not known before it" if answer.later is not None and line in before else "not known"
        yield Text.assemble((what, "yellow"), f": {line}")
    for command in commands:
        yield Text(f"    next      {command}")


def _origin(
    origin: NonFiniteOrigin,
    kind: Kind,
    elements: dict[str, list[int]],
    lacking: str,
    operators: Sequence[NonFiniteOperator],
) -> Iterator[Text]:
    event = origin.event
    what = f"{verb_text(origin.verb)} {first_text(origin, kind)}"
    mark = (title(event), "yellow") if origin.skipped else (f"✗ {title(event)}", "bold red")
    yield Text.assemble(mark, f" {what}")
    if event.source.site is not None:
        yield Text(f"    {'graph at' if origin.computes else 'at':<9} {event.source.site}")
    yield from (Text(f"    computes  {line}") for line in some_lines(origin.computes))
    for one in origin.tensors:
        yield Text(f"    {'input' if origin.verb == 'reads' else 'output':<9} {_counted(one)}")
        if one.name in elements:
            yield Text(f"    elements  [{_elements(elements[one.name])}]")
    yield Text(f"    → {_source(origin, kind, lacking)}")
    for operator in operators:
        perhaps = "" if operator.stored else ", which the program may mask, as by torch.where"
        yield Text(f"    → in eager {_operator_text(operator)}{perhaps}")
        if operator.line is not None:
            yield from (Text(f"      {line}") for line in some_lines([operator.line]))
    yield from _carried(origin)
    if origin.scaler is not None:
        yield Text(f"    → {_skips(origin, origin.scaler)}")
    if origin.unread:
        reads = "nothing reads it after that step"
        if origin.partial:
            reads = "the run lacks launches, which may take it to a check"
        yield Text(f"    → it depends on the scale of torch.amp.GradScaler, and {reads}")


def _skips(origin: NonFiniteOrigin, check: DataEvent) -> str:
    if origin.stepped:
        finds = f"torch.amp.GradScaler finds it by operator #{check.source.index}"
        return f"{finds}, and an optimizer steps with it: `scaler.step(optimizer)` skips such a step"
    skips = "skips" if check.known else "may skip"
    text = f"torch.amp.GradScaler {skips} that step of the optimizer, by operator #{check.source.index}"
    if origin.scaled is False:
        unseen = "no tensor that is read here is seen to depend on it"
        return f"{text}, but its scale is not known to be the cause: {unseen}"
    return f"{text}: an inf that its scale causes in a gradient is no fault"


def _operator_text(operator: NonFiniteOperator) -> str:
    of = f" of {', '.join(map(number_text, operator.operands))}" if operator.operands else ""
    at = f", at {list(operator.index)}" if operator.operands and operator.index else ""
    graph = ", in the backward" if operator.backward else ""
    return f"{operator.name} makes {_MADE[operator.makes]}{of}{at}{graph}"


def first_text(origin: NonFiniteOrigin, kind: Kind) -> str:
    """`the first NaN or inf`, and how far that is known."""
    certain = "" if origin.first else "certain "
    shown = " that digests show" if origin.unseen else " that was recorded" if origin.partial else ""
    return f"the first {certain}{_VALUE[kind]}{shown}"


def later_text(answer: NonFiniteAnswer) -> str:
    """What `answer.later` makes: `more`, `a NaN`."""
    if answer.origin is None:
        return value_text(answer.kind)
    return "a NaN" if answer.origin.made and not answer.origin.scaled else "more"


def value_text(kind: Kind) -> str:
    """`a NaN or inf`."""
    return "an inf" if kind == "inf" else f"a {_VALUE[kind]}"


def verb_text(verb: Verb) -> str:
    """What a launch or an operator does to a value, in the third person."""
    return {"passes": "passes on", "keeps": "does not overwrite"}.get(verb, verb)


def undecided_text(answer: NonFiniteAnswer) -> list[str]:
    """What is not known of the first launch that may have stored such a value, in a sentence."""
    if not answer.undecided:
        return []
    old, others = answer.undecided[0], len(answer.undecided) - 1
    more = f"; likewise {plural(others, 'later launch')}" if others else ""
    after, before = _count_text(old.tensor.digest), _count_text(old.tensor.before)
    written = f", which {old.operator} wrote, and its inputs have no digests" if old.operator else ""
    name = old.tensor.name
    if old.certain:
        return [f"who made the {after} that {title(old.event)} does not overwrite in {name}{written}{more}"]
    held = f"{name} held {before} before it" if before else f"{name} has no digest before it"
    return [
        f"whether {title(old.event)} stored the {after} in {name}, or left them there: {held}{written}{more}"
    ]


def unexplained_text(answer: NonFiniteAnswer) -> str:
    """Where digests show a value whose origin is not known, in a sentence; for `answer.unexplained`."""
    reads = [str(one) for one in answer.reads if not one.written.given]
    sentence = (*reads, *undecided_text(answer))[0]
    return f"{_VALUE[answer.kind]} of unknown origin: {sentence}"


def _count_text(digest: Digest | None) -> str:
    counts = {"NaN": digest.nan, "inf": digest.inf} if digest is not None else {}
    return " and ".join(f"{count} {name}" for name, count in counts.items() if count)


def _source(origin: NonFiniteOrigin, kind: Kind, lacking: str) -> str:
    event = origin.event
    if origin.old is not None:
        return _old_text(origin.old, read=origin.verb == "reads")
    if origin.unwritten:
        return f"nothing wrote {', '.join(origin.unwritten)}: this memory was allocated, and not set"
    if origin.fills:
        lines = ", ".join(f"{one.file}:{one.line}" for one in origin.fills)
        return (
            f"not certain: it fills memory that is allocated and not set ({lines}) with NaN; if later code "
            "sets these elements, they are no fault"
        )
    if origin.cast is not None:
        by, dtype = origin.cast
        at = f", {by.source.site}" if by.source.site is not None else ""
        return f"{title(by)} wrote these bytes as {dtype}{at}: they are read as another type"
    if origin.verb == "reads":
        where = f"{lacking} that is not in the run, " if lacking else ""
        return (
            f"no recorded launch or operator made it: it is from {where}the program's data, or from memory "
            "that nothing initialised"
        )
    if event.from_python:
        return (
            "it computes nothing: the value is from Python or NumPy, as in torch.tensor(…), "
            "torch.from_numpy(…) and x[0] = …"
        )
    if origin.constant and origin.verb == "may make":
        return "not certain: it stores a constant, which may be the program's own, as the -inf of a mask"
    read = _FINITE[kind] if event.reads else "it reads no element of a tensor"
    if any(one.digest is None for one in event.reads):
        read = f"{_FINITE[kind]}, as far as it has digests"
    if numbers := event.bad_numbers("any"):
        called = f"it is called with {', '.join(numbers)}"
        certain = origin.verb != "may make"
        return f"{read}; {called}" if certain else f"not certain: {called}, and may compute one, too"
    if origin.constant:
        return f"{read}; it stores a constant of its code, as the -inf of a mask"
    return read


def _old_text(old: OldContents, *, read: bool) -> str:
    tensor = old.tensor
    stores = f"{title(old.event) if read else 'it'} stores only finite values"
    if tensor.unwritten is not None:
        first, count = tensor.unwritten
        left = f"{stores}, and leaves {plural(count, 'element')} of {tensor.name} unwritten, first [{first}]"
        text = f"{left}: nothing initialised {'it' if count == 1 else 'them'}"
    else:
        text = f"{stores}: {tensor.name} held {_count_text(tensor.before) or 'others'} before it"
    if old.filler is None:
        return text
    by = f"{old.filler.name} ({old.filler.source.site})" if old.filler.source.site else old.filler.name
    return f"{text}; {by} wrote that memory before it was allocated"


def _carried(origin: NonFiniteOrigin) -> Iterator[Text]:
    if origin.carriers and not origin.chain:
        many = "a launch or operator" if origin.carriers == 1 else f"{origin.carriers} launches or operators"
        yield Text(f"    read      by {many} later, whose results have no digests")
    elif origin.carriers > len(origin.chain):
        many = f"{'' if origin.carriers_known else 'at most '}{origin.carriers} launches and operators"
        yield Text(f"    carried   on by {many}; the path to the last one:")
    for after in origin.chain[: _SHOWN - 1]:
        yield Text(f"    then      {title(after)}{_line(after)}")
    if more := len(origin.chain) - _SHOWN:
        yield from [Text(f"    ...       {more} more")] if more > 0 else []
    if len(origin.chain) >= _SHOWN:
        yield Text(f"    last      {title(origin.chain[-1])}{_line(origin.chain[-1])}")


def title(event: DataEvent) -> str:
    """`launch #3 (step 0, launch 3 of it) triton_poi_fused_log_0`, `operator #7 aten::log`."""
    rank = f" on rank {event.rank}" if event.rank else ""
    if isinstance(event.source, KernelLaunch):
        step = "".join(f" ({one})" for one in step_text(event.source))
        return f"launch #{event.source.index}{step} {event.name}{rank}"
    after = f"after {plural(event.source.launch, 'launch')}"
    return f"operator #{event.source.index} {event.name} ({after}){rank}"


def _line(event: DataEvent) -> str:
    return f"  # {event.source.site}" if event.source.site is not None else ""


def _counted(one: NonFiniteTensor) -> str:
    if one.digest is None:
        return f"{one.name}={tensor_text(one.meta)}"
    counts = {"nan": one.digest.nan, "inf": one.digest.inf}
    counted = " ".join(f"{name}={count}" for name, count in counts.items() if count)
    return f"{one.name}={tensor_text(one.meta)}  {counted}"


def _elements(indices: list[int]) -> str:
    shown = [f"{a}:{b}" if b - a > 1 else str(a) for a, b in ranges(indices)]
    more = f", and {len(shown) - _SHOWN} more ranges" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more
