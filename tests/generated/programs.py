"""Random programs for data/random_program.py, as hypothesis strategies, and edits of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeAlias

import msgspec
from commands import DATA
from hypothesis import strategies as st

from tracing.model import Case
from tracing.program.case import import_file

PATH = (DATA / "random_program.py").resolve()
case: Any = import_file(PATH)
Position: TypeAlias = tuple[int, ...]  # of a step: its index in the program, then in a loop or thread

SPANS = ((0, 64), (0, 32), (32, 32), (16, 32), (16, 16), (48, 16))
INPUTS = {"scale": 2, "add": 3, "bump": 1, "total": 2, "place": 2}  # kernels, and how many regions they take
OPERATORS = {
    "add_": ("aten::add_*",),
    "mul_": ("aten::mul_*",),
    "copy_": ("aten::copy_*",),
    "sub_": ("aten::sub_*",),
    "cat": ("aten::cat*", "aten::copy_*"),
    "mm": ("aten::mm*",),
    "column": ("aten::fill_*",),
    "sin": ("aten::sin*",),
}
SCALARS = st.sampled_from((0.5, 1.5, -0.75))


def case_of(program: Any) -> Case:
    """The case that runs a program."""
    return Case("random_program", PATH, "", partial(case.workload, program))


def as_json(program: Any) -> str:
    """What `random_program.py:program=FILE` reads."""
    return msgspec.json.encode(program).decode()


# ---- strategies ----


@st.composite
def launches(draw: st.DrawFn) -> Any:
    kernel = draw(st.sampled_from(sorted(INPUTS)))
    _, length = draw(st.sampled_from(SPANS))
    regions = []
    for _ in range(INPUTS[kernel]):
        at = draw(st.sampled_from([span[0] for span in SPANS if span[1] == length]))
        regions.append(case.Region(draw(st.integers(0, 3)), at, length))
    n = draw(st.sampled_from((length, length - 6, length // 2)))
    return case.Launch(kernel, tuple(regions), draw(SCALARS), n)


@st.composite
def operators(draw: st.DrawFn, rebinding: bool = True) -> Any:
    """rebinding -- also operators that replace a buffer by another tensor"""
    start, length = draw(st.sampled_from(SPANS))
    buffer = draw(st.integers(0, 3))
    other = (buffer + draw(st.integers(1, 3))) % 4  # an operator refuses operands that overlap
    name = draw(st.sampled_from([name for name in OPERATORS if rebinding or name != "sin"]))
    return case.Operator(
        name, case.Region(buffer, start, length), case.Region(other, start, length), draw(SCALARS)
    )


@st.composite
def host_writes(draw: st.DrawFn, value: float | None = None) -> Any:
    start, length = draw(st.sampled_from(SPANS))
    region = case.Region(draw(st.integers(0, 3)), start, length)
    how = draw(st.sampled_from(("numpy", "view", "ctypes")))
    written = draw(st.sampled_from((3.25, -1.5))) if value is None else value
    return case.Host(how, region, draw(st.integers(0, length - 1)), written)


def leaf_steps(rebinding: bool) -> st.SearchStrategy[Any]:
    return st.one_of(launches(), launches(), operators(rebinding), host_writes())


@st.composite
def programs(draw: st.DrawFn, rebinding: bool = True, pool: bool | None = None) -> Any:
    leaf = leaf_steps(rebinding)
    few = st.lists(leaf, min_size=1, max_size=3).map(tuple)
    thread = st.builds(case.Thread, few)
    nested = st.lists(st.one_of(leaf, thread), min_size=1, max_size=3).map(tuple)
    loop = st.builds(case.Loop, st.integers(2, 3), nested)
    steps = draw(st.lists(st.one_of(leaf, leaf, leaf, loop, thread), min_size=2, max_size=6))
    if draw(st.booleans()):  # each buffer is written by a kernel first
        steps = [case.Launch("bump", (case.Region(buffer),)) for buffer in range(4)] + steps
    return case.Program(tuple(steps), draw(st.booleans()) if pool is None else pool)


# ---- edits ----


def leaves(program: Any) -> list[tuple[Position, Any]]:
    """All steps that contain no other steps, with their positions."""
    return list(_leaves(program.steps, ()))


def _leaves(steps: Any, before: Position) -> Iterator[tuple[Position, Any]]:
    for number, step in enumerate(steps):
        if isinstance(step, (case.Loop, case.Thread)):
            yield from _leaves(step.steps, (*before, number))
        else:
            yield (*before, number), step


def with_step(program: Any, position: Position, step: Any) -> Any:
    """The program with another step at a position."""
    return msgspec.structs.replace(program, steps=_with(program.steps, position, step, 1))


def with_insertion(program: Any, position: Position, step: Any) -> Any:
    """The program with one step more, before the one at a position."""
    return msgspec.structs.replace(program, steps=_with(program.steps, position, step, 0))


def without(program: Any, position: Position) -> Any:
    """The program without the step at a position; a loop of no iterations keeps the positions of others."""
    return with_step(program, position, case.Loop(0, ()))


def _with(steps: Any, position: Position, step: Any, replaced: int) -> Any:
    first, *rest = position
    if not rest:
        return (*steps[:first], step, *steps[first + replaced :])
    outer = steps[first]
    inner = msgspec.structs.replace(outer, steps=_with(outer.steps, tuple(rest), step, replaced))
    return (*steps[:first], inner, *steps[first + 1 :])
