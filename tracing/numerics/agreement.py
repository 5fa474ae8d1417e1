"""Compares the results and the state of the compiled case with those of eager."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from tracing.model import Outcome, PlainValue, Uncomparable
from tracing.model.first_names import first_names
from tracing.numerics.fact_difference import differ_in_dtype, stride_difference, value_difference
from tracing.numerics.referee import Referee
from tracing.numerics.result_verdicts import ResultVerdicts
from tracing.numerics.verdict_text import NAMED
from tracing.program.state import AFTERWARDS, STEPPED
from tracing.program.structure import Fact, Facts

_NUMBERS = ("int", "float", "complex")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One value that differs from eager's."""

    name: str
    how: str
    size: float  # largest difference relative to eager's largest value; inf: not a difference of numbers
    laid_out: bool = False  # strides or dtypes differ, and the values agree


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of comparing a compiled case with eager."""

    outcome: Outcome
    differing: tuple[Disagreement, ...]  # the worst first
    eager_off: tuple[str, ...]  # results that are off in eager and right when compiled
    by_tolerances: bool = False  # fixed tolerances decide on each disagreement, as there is no reference


def outcome_of(actual: Facts, expected: Facts, referee: Referee | None = None) -> Outcome:
    """Compare a compiled case with eager: structure, layout, and values.

    referee -- decides for tensors whose bits differ whether rounding explains it; None: assert_close does

    The detail describes the worst disagreement, and names others.
    """
    return agreement(actual, expected, referee).outcome


def agreement(actual: Facts, expected: Facts, referee: Referee | None = None) -> Agreement:
    """Compare like `outcome_of`, and return every disagreement."""
    verdicts = ResultVerdicts(referee)
    differing = sorted(_disagreements(actual, expected, verdicts), key=lambda one: -one.size)
    without = [name for name, one in actual.items() if isinstance(one, Uncomparable)]
    undeclared = tuple(referee.undeclared) if referee is not None else ()
    remarks = [*undeclared, *verdicts.remarks()]
    remarks += [f"not compared: {first_names(without, NAMED)}"] if without else []
    status, summary = _summary(differing, verdicts, actual)
    outcome = Outcome(
        status,
        "; ".join([summary, *remarks]),
        eager_repeats=verdicts.eager_repeats,
        differing=tuple(one.name for one in differing),
        other_numbers=tuple(verdicts.other_numbers),
        laid_out=tuple(one.name for one in differing if one.laid_out),
        less_precise=tuple(verdicts.less_precise()),
        undeclared=undeclared,
    )
    by_tolerances = bool(differing) and {one.name for one in differing} <= set(verdicts.by_tolerances)
    return Agreement(outcome, tuple(differing), verdicts.eager_off(), by_tolerances)


def _summary(
    differing: list[Disagreement], verdicts: ResultVerdicts, actual: Facts
) -> tuple[Literal["differs", "not decided", "passed"], str]:
    undecided = verdicts.undecided() or _unseen(actual)
    if differing:
        return "differs", "; ".join([_detail(differing), *(f"not decided: {one}" for one in undecided)])
    if undecided:
        return "not decided", "; ".join(undecided)
    if off := verdicts.eager_off():
        names = first_names(off, NAMED)
        return "passed", f"the compiled results are right; eager's agree, except for {names}"
    if not verdicts.other_numbers:
        return "passed", _agreed(actual)
    names = first_names(verdicts.other_numbers, NAMED)
    second = f"{names} in a second compile, which draws eager's random numbers"
    return "passed", f"{_agreed(actual)}, {second}: kernels that draw others are not compared"


def _unseen(actual: Facts) -> list[str]:
    # what the case returns, if nothing of that can be compared, and it has no gradient
    outputs = {name: one for name, one in actual.items() if name.startswith("output")}
    unseen = [f"{name} ({one.type})" for name, one in outputs.items() if isinstance(one, Uncomparable)]
    compared = any(
        isinstance(one, torch.Tensor) or (isinstance(one, PlainValue) and one.text != "None")
        for one in outputs.values()
    )
    if not unseen or compared or any(name.startswith("grad of ") for name in actual):
        return []
    return [f"nothing that it returns can be compared: {first_names(unseen, NAMED)}"]


def _agreed(actual: Facts) -> str:
    values = [name for name, one in actual.items() if _is_value(name, one)]
    results = [name for name in values if not name.endswith(AFTERWARDS)]
    if len(results) > 1:
        return f"all {len(results)} results agree with eager"
    if results:
        return "the result agrees with eager"
    if values:  # it is not known here whether the case changed them
        return "it returns no tensor and has no gradient; its arguments agree with eager afterwards"
    return "it returns no tensor and has no gradient: nothing was compared with eager"


def _is_value(name: str, fact: Fact) -> bool:
    # results only: numbers among an optimizer's settings do not count
    number = isinstance(fact, PlainValue) and fact.type in _NUMBERS and name.startswith("output")
    return number or isinstance(fact, torch.Tensor)


def _detail(disagreements: list[Disagreement]) -> str:
    worst, *others = disagreements
    also = f"; also {first_names([one.name for one in others], NAMED)}" if others else ""
    return f"{worst.name}: {worst.how}{also}"


def _disagreements(actual: Facts, expected: Facts, verdicts: ResultVerdicts) -> Iterator[Disagreement]:
    for name in dict.fromkeys((*actual, *expected)):
        if name in actual and name in expected:
            a, b = actual[name], expected[name]
            how, size = value_difference(a, b)
            laid_out = False
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
                how, size = verdicts.of(name, a, b) or (how, size)
                if not how:
                    verdicts.tolerated(name, size)
                laid_out = not how or differ_in_dtype(a, b)
                if strides := stride_difference(name, a, b):
                    how, size = f"{strides}; {how or 'its values agree'}", math.inf
            if how:
                yield Disagreement(name, how, size, laid_out)
        elif not name.startswith(STEPPED):  # a step that torch.compile compiled is not observed
            has, lacks = ("compiled", "eager") if name in actual else ("eager", "compiled")
            yield Disagreement(name, f"{has} has it, {lacks} has not", math.inf)
