"""One fault planted into a random program, and what is true of the two programs, by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from hypothesis import assume
from hypothesis import strategies as st
from programs import (
    OPERATORS,
    Position,
    case,
    host_writes,
    launches,
    leaves,
    operators,
    programs,
    with_insertion,
    with_step,
    without,
)
from truths import Accusation, Truth
from witness import Shown, Trace, Writer, iterations, shown, traced


@dataclass(frozen=True)
class Planted:
    """Two programs, and who is to be accused of their difference."""

    fault: str
    a: Any
    b: Any
    position: Position
    names: tuple[str, ...] = ()  # kernels or operators
    runs: str = "ab"  # that have what is accused
    moved: dict[Position, Position] = field(default_factory=dict)


# ---- planting ----


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """A program with one fault of any kind."""
    return draw(FAULTS[draw(st.sampled_from(sorted(FAULTS)))]())


@st.composite
def _changed_launch(draw: st.DrawFn, fault: str, change: Callable[[Any], Any]) -> Planted:
    program = draw(programs())
    found = [(position, step) for position, step in leaves(program) if isinstance(step, case.Launch)]
    assume(found)
    position, step = draw(st.sampled_from(found))
    return Planted(fault, program, with_step(program, position, change(step)), position, (step.kernel,))


def code() -> st.SearchStrategy[Planted]:
    """Another constant in a kernel of the same name."""
    return _changed_launch("code", lambda step: msgspec.structs.replace(step, code=1))


def scalar() -> st.SearchStrategy[Planted]:
    """Another scalar argument."""
    return _changed_launch("scalar", lambda step: msgspec.structs.replace(step, scalar=2.25))


def count() -> st.SearchStrategy[Planted]:
    """Fewer elements."""
    return _changed_launch("count", lambda step: msgspec.structs.replace(step, n=step.n - 2))


@st.composite
def _inserted(draw: st.DrawFn, fault: str, steps: st.SearchStrategy[Any], rebinding: bool = True) -> Planted:
    """A step that one run alone has."""
    program, step = draw(programs(rebinding)), draw(steps)
    position = draw(st.sampled_from([position for position, _ in leaves(program)]))
    have = with_insertion(program, position, step)
    runs = draw(st.sampled_from("ab"))
    a, b = (have, without(have, position))[:: 1 if runs == "a" else -1]
    names = OPERATORS[step.name] if fault == "operator" else (getattr(step, "kernel", "*"),)
    return Planted(fault, a, b, position, names, runs)


def host() -> st.SearchStrategy[Planted]:
    """A write by the host."""
    return _inserted("host", host_writes(7.25))


def operator() -> st.SearchStrategy[Planted]:
    """An operator."""
    return _inserted("operator", operators())


def launch() -> st.SearchStrategy[Planted]:
    """A launch."""
    return _inserted("launch", launches())


@st.composite
def other_operator(draw: st.DrawFn) -> Planted:
    """Another operator in the place of one, or another scalar."""
    program = draw(programs())
    found = [(position, step) for position, step in leaves(program) if isinstance(step, case.Operator)]
    assume(found)
    position, step = draw(st.sampled_from(found))
    name = draw(st.sampled_from([name for name in OPERATORS if name != "sin"]))
    other = msgspec.structs.replace(step, name=name, scalar=2.25)
    assume(name != step.name or name in ("add_", "mul_", "column"))
    names = OPERATORS[step.name] + OPERATORS[name]
    return Planted("other_operator", program, with_step(program, position, other), position, names)


@st.composite
def swap(draw: st.DrawFn) -> Planted:
    """Two launches, one after the other, change places."""
    program, first, second = draw(programs()), draw(launches()), draw(launches())
    assume(first != second)
    position = draw(st.sampled_from([position for position, _ in leaves(program)]))
    after = (*position[:-1], position[-1] + 1)
    a = with_insertion(with_insertion(program, position, second), position, first)
    b = with_step(with_step(a, position, second), after, first)
    return Planted(
        "swap", a, b, position, (first.kernel, second.kernel), moved={position: after, after: position}
    )


@st.composite
def garbage(draw: st.DrawFn) -> Planted:
    """A buffer of which a part is never written; what lies there differs."""
    program = draw(programs())
    position = draw(st.sampled_from([position for position, _ in leaves(program)]))
    a = with_insertion(program, position, case.Fresh(draw(st.integers(0, 3))))
    return Planted("garbage", a, msgspec.structs.replace(a, garbage=0x2B), position)


@st.composite
def spill(draw: st.DrawFn) -> Planted:
    """A kernel writes past its argument: into a gap, or into a neighbour."""
    program = draw(programs(rebinding=False, pool=True))
    start, length = draw(st.sampled_from(((0, 64), (32, 32), (48, 16))))  # up to the end of a buffer
    region = case.Region(draw(st.integers(0, 2)), start, length)
    position = draw(st.sampled_from([position for position, _ in leaves(program)]))
    a = with_insertion(program, position, case.Launch("spill", (region,), 1.75, length))
    return Planted("spill", a, msgspec.structs.replace(a, gap=0), position, ("spill",))


FAULTS = {
    made.__name__: made
    for made in (code, scalar, count, host, operator, launch, other_operator, swap, garbage, spill)
}


# ---- truth ----

_DECIDED = {Writer.LAUNCH, Writer.HOST_AFTER_LAUNCH}  # what a kernel left is known
_KINDS = {
    "code": "code",
    "scalar": "configuration",
    "count": "configuration",
    "host": "host",
    "operator": "operator",
    "other_operator": "operator",
    "launch": "missing",
    "swap": "order",
    "garbage": "uninitialised",
    "spill": "out of bounds",
}


def truth_of(plan: Planted) -> Truth:
    """What `compare` must say of the two programs."""
    a, b = traced(plan.a), traced(plan.b)
    names = plan.names or ("*",)
    truth = Truth(accusations=tuple(Accusation(_KINDS[plan.fault], name) for name in names))
    if plan.fault in ("code", "scalar", "count"):
        return replace(truth, launch=b.first(plan.position))
    found = shown(a, b, plan.moved)
    if found is None:
        return _without_effect(plan, truth)
    return _NARROWED[plan.fault](plan, truth, found, a)


def _without_effect(plan: Planted, truth: Truth) -> Truth:
    """A launch or an order that changes nothing may be named; nothing else may."""
    if plan.fault == "launch" or (plan.fault == "swap" and _conflict(plan)):
        return replace(truth, equal=True)
    return Truth(equal=True)


def _conflict(plan: Planted) -> bool:
    steps = dict(leaves(plan.a))
    first, second = (steps[position] for position in plan.moved)
    return any(
        x.buffer == y.buffer and x.start < y.start + y.length and y.start < x.start + x.length
        for x in first.regions
        for y in second.regions
    )


def _of_host(plan: Planted, truth: Truth, found: Shown, a: Trace) -> Truth:
    accusations = [*truth.accusations]
    if a.before[plan.position] == 0:
        accusations.append(Accusation("start"))
    if found.launch is None:
        accusations.append(Accusation("result"))
    exact = found.launch is not None and len(accusations) == 1
    return replace(
        truth,
        accusations=tuple(accusations),
        runs=plan.runs if exact else "",
        undecided=not found.around <= _DECIDED,
    )


def _of_operator(plan: Planted, truth: Truth, found: Shown, a: Trace) -> Truth:
    extra = (Accusation("result"),) if found.launch is None else ()
    return replace(
        truth,
        accusations=truth.accusations + extra,
        # another operator may have passed it on, or the planted one is in both runs, with another scalar
        undecided=found.launch is None or plan.fault != "operator" or len(_operators(plan)) > 1,
    )


def _operators(plan: Planted) -> list[Any]:
    steps = leaves(plan.a if plan.runs == "a" else plan.b)
    return [step for _, step in steps if isinstance(step, case.Operator)]


def _of_launch(plan: Planted, truth: Truth, found: Shown, a: Trace) -> Truth:
    return replace(truth, runs=plan.runs)


def _of_swap(plan: Planted, truth: Truth, found: Shown, a: Trace) -> Truth:
    accusations = [Accusation("order")]
    if plan.names[0] == plan.names[1]:  # two launches of a kernel with other arguments, and so it may be said
        accusations.append(Accusation("configuration", plan.names[0]))
    if any(iterations(plan.position, plan.a)):  # a b a b, b a b a: the first is missing, the last added
        accusations += [Accusation("missing", name) for name in plan.names]
    # of two launches of a kernel only what they find tells which is which
    return replace(truth, accusations=tuple(accusations), undecided=plan.names[0] == plan.names[1])


def _of_memory(plan: Planted, truth: Truth, found: Shown, a: Trace) -> Truth:
    if found.launch is None:
        return replace(truth, accusations=(*truth.accusations, Accusation("result")), undecided=True)
    if plan.fault == "garbage":
        truth = replace(truth, accusations=(Accusation("uninitialised", found.kernel),))
    return replace(truth, undecided=Writer.OPERATOR in found.writers)


_NARROWED: dict[str, Callable[[Planted, Truth, Shown, Trace], Truth]] = {
    "host": _of_host,
    "operator": _of_operator,
    "other_operator": _of_operator,
    "launch": _of_launch,
    "swap": _of_swap,
    "garbage": _of_memory,
    "spill": _of_memory,
}
