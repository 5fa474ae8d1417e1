"""Hypothesis strategies that plant one fault into a random program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from generated.programs import (
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
from hypothesis import assume
from hypothesis import strategies as st


@dataclass(frozen=True)
class Planted:
    """Two programs, and what compare must accuse of their difference."""

    fault: str
    a: Any
    b: Any
    position: Position
    names: tuple[str, ...] = ()  # of kernels or operators
    runs: str = "ab"  # that have what is accused
    moved: dict[Position, Position] = field(default_factory=dict)


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """A program with one fault of any kind."""
    return draw(FAULTS[draw(st.sampled_from(sorted(FAULTS)))]())


@st.composite
def _changed_launch(draw: st.DrawFn, fault: str, change: Callable[[Any], Any]) -> Planted:
    program = draw(programs())
    launch_steps = [(position, step) for position, step in leaves(program) if isinstance(step, case.Launch)]
    assume(launch_steps)
    position, step = draw(st.sampled_from(launch_steps))
    return Planted(fault, program, with_step(program, position, change(step)), position, (step.kernel,))


def code() -> st.SearchStrategy[Planted]:
    """A kernel of the same name has another constant."""
    return _changed_launch("code", lambda step: msgspec.structs.replace(step, code=1))


def scalar() -> st.SearchStrategy[Planted]:
    """A launch has another scalar argument."""
    return _changed_launch("scalar", lambda step: msgspec.structs.replace(step, scalar=2.25))


def count() -> st.SearchStrategy[Planted]:
    """A launch processes fewer elements."""
    return _changed_launch("count", lambda step: msgspec.structs.replace(step, n=step.n - 2))


@st.composite
def _inserted(draw: st.DrawFn, fault: str, steps: st.SearchStrategy[Any], rebinding: bool = True) -> Planted:
    """Only one run has a certain step."""
    program, step = draw(programs(rebinding)), draw(steps)
    position = draw(st.sampled_from([position for position, _ in leaves(program)]))
    have = with_insertion(program, position, step)
    runs = draw(st.sampled_from("ab"))
    a, b = (have, without(have, position))[:: 1 if runs == "a" else -1]
    names = OPERATORS[step.name] if fault == "operator" else (getattr(step, "kernel", "*"),)
    return Planted(fault, a, b, position, names, runs)


def host() -> st.SearchStrategy[Planted]:
    """Only one run has a write by the host."""
    return _inserted("host", host_writes(7.25))


def operator() -> st.SearchStrategy[Planted]:
    """Only one run has an operator."""
    return _inserted("operator", operators())


def launch() -> st.SearchStrategy[Planted]:
    """Only one run has a launch."""
    return _inserted("launch", launches())


@st.composite
def other_operator(draw: st.DrawFn) -> Planted:
    """An operator is replaced by another one, or has another scalar."""
    program = draw(programs())
    operator_steps = [
        (position, step) for position, step in leaves(program) if isinstance(step, case.Operator)
    ]
    assume(operator_steps)
    position, step = draw(st.sampled_from(operator_steps))
    name = draw(st.sampled_from([name for name in OPERATORS if name != "sin"]))
    other = msgspec.structs.replace(step, name=name, scalar=2.25)
    assume(name != step.name or name in ("add_", "mul_", "column"))
    names = OPERATORS[step.name] + OPERATORS[name]
    return Planted("other_operator", program, with_step(program, position, other), position, names)


@st.composite
def swap(draw: st.DrawFn) -> Planted:
    """Two consecutive launches are swapped."""
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
    """Part of a buffer is never written, and its uninitialised contents differ."""
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
