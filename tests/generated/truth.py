"""The truth about a random program and its copy with a fault: by construction, and by the witness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faults.truths import Accusation, Truth
from generated.faults import Planted
from generated.programs import case, leaves
from generated.witness import Shown, Trace, Writer, iterations, shown, traced

_DECIDED = {Writer.LAUNCH, Writer.HOST_AFTER_LAUNCH}  # a kernel's results are recorded
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
    """The answer that `compare` must give for the two programs."""
    a, b = traced(plan.a, plan.position), traced(plan.b, plan.position)
    names = plan.names or ("*",)
    truth = Truth(accusations=tuple(Accusation(_KINDS[plan.fault], name) for name in names))
    if plan.fault in ("code", "scalar", "count"):
        return replace(truth, launch=b.first(plan.position))
    first = shown(a, b, plan.moved)
    if first is None:
        return _without_effect(plan, truth)
    return _NARROWED[plan.fault](plan, truth, first, a)


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


def _of_host(plan: Planted, truth: Truth, first: Shown, a: Trace) -> Truth:
    accusations = [*truth.accusations]
    if a.before[plan.position] == 0:
        accusations.append(Accusation("start"))
    if first.launch is None:
        accusations.append(Accusation("result"))
    with_fault, without = (plan.a, plan.b) if plan.runs == "a" else (plan.b, plan.a)
    others = _host_writes(without, dict(leaves(with_fault))[plan.position].target.buffer)
    exact = first.launch is not None and len(accusations) == 1 and not others
    return replace(
        truth,
        accusations=tuple(accusations),
        runs=plan.runs if exact else "",
        undecided=not first.around <= _DECIDED,
    )


def _host_writes(program: Any, buffer: int) -> bool:
    return any(isinstance(one, case.Host) and one.target.buffer == buffer for _, one in leaves(program))


def _of_operator(plan: Planted, truth: Truth, first: Shown, a: Trace) -> Truth:
    if first.launch is None:
        return replace(truth, accusations=(*truth.accusations, Accusation("result")), undecided=True)
    # another operator may have passed it on; or both runs have the operator, with another scalar
    passed_on = Writer.OPERATOR in (first.a if plan.runs == "a" else first.b)
    exclusive = plan.fault == "operator"
    return replace(
        truth, runs=plan.runs if exclusive and not passed_on else "", undecided=passed_on or not exclusive
    )


def _of_launch(plan: Planted, truth: Truth, first: Shown, a: Trace) -> Truth:
    return replace(truth, runs=plan.runs)


def _of_swap(plan: Planted, truth: Truth, first: Shown, a: Trace) -> Truth:
    accusations = [Accusation("order")]
    if plan.names[0] == plan.names[1]:  # two launches of a kernel with other arguments, and so it may be said
        accusations.append(Accusation("configuration", plan.names[0]))
    if any(iterations(plan.position, plan.a)):  # a b a b, b a b a: the first is missing, the last added
        accusations += [Accusation("missing", name) for name in plan.names]
    # two launches of one kernel are distinguished only by their inputs
    return replace(truth, accusations=tuple(accusations), undecided=plan.names[0] == plan.names[1])


def _of_memory(plan: Planted, truth: Truth, first: Shown, a: Trace) -> Truth:
    if first.launch is None:
        return replace(truth, accusations=(*truth.accusations, Accusation("result")), undecided=True)
    lent = False  # lent to the host, which may write all of it
    if plan.fault == "garbage":
        truth = replace(truth, accusations=(Accusation("uninitialised", first.kernel),))
        lent = _host_writes(plan.a, dict(leaves(plan.a))[plan.position].buffer)
    return replace(truth, undecided=lent or Writer.OPERATOR in first.b)


_NARROWED: dict[str, Callable[[Planted, Truth, Shown, Trace], Truth]] = {
    "host": _of_host,
    "operator": _of_operator,
    "other_operator": _of_operator,
    "launch": _of_launch,
    "swap": _of_swap,
    "garbage": _of_memory,
    "spill": _of_memory,
}
