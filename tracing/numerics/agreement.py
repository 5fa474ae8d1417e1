"""Compares the results and the state of the compiled case with those of eager."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from tracing.digest.host import digest
from tracing.model import Container, Outcome, PlainValue, Uncomparable
from tracing.numerics.referee import Referee
from tracing.numerics.reference import UNREPEATABLE
from tracing.numerics.shadow_storages import BITS_AS, is_inexact
from tracing.numerics.verdict import Judged
from tracing.numerics.verdict_text import (
    apart_text,
    judged_text,
    less_precise_text,
    undecided_text,
    within_text,
)
from tracing.program.state import AFTERWARDS, STEPPED
from tracing.program.structure import Fact, Facts

NAMED = 5  # results that are named, of those that disagree
_NUMBERS = ("int", "float", "complex")
_TOLERATED = 0.1  # of eager's largest value: beyond what the tolerances of any dtype allow relative to it


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


def judged(actual: Facts, expected: Facts, referee: Referee | None = None) -> Outcome:
    """Compare a compiled case with eager: structure, layout, and values.

    referee -- decides for tensors whose bits differ whether rounding explains it; None: assert_close does

    The detail describes the worst disagreement, and names others.
    """
    return agreement(actual, expected, referee).outcome


def agreement(actual: Facts, expected: Facts, referee: Referee | None = None) -> Agreement:
    """Compare like `judged`, and return every disagreement."""
    verdicts = _Verdicts(referee)
    differing = sorted(_disagreements(actual, expected, verdicts), key=lambda one: -one.size)
    without = [name for name, one in actual.items() if isinstance(one, Uncomparable)]
    undeclared = tuple(referee.undeclared) if referee is not None else ()
    remarks = [*undeclared, *verdicts.remarks(), *([f"not compared: {_some(without)}"] if without else [])]
    status, summary = _summary(differing, verdicts.undecided() or [*_unseen(actual)], actual)
    outcome = Outcome(
        status,
        "; ".join([summary, *remarks]),
        eager_repeats=verdicts.eager_repeats,
        differing=tuple(one.name for one in differing),
        drawn=tuple(verdicts.off_and_drawn),
        other_numbers=tuple(verdicts.other_numbers),
        laid_out=tuple(one.name for one in differing if one.laid_out),
        less_precise=tuple(verdicts.less_precise()),
        undeclared=undeclared,
    )
    by_tolerances = bool(differing) and {one.name for one in differing} <= set(verdicts.by_tolerances)
    return Agreement(outcome, tuple(differing), verdicts.eager_off(), by_tolerances)


def _summary(
    differing: list[Disagreement], undecided: list[str], actual: Facts
) -> tuple[Literal["differs", "not decided", "passed"], str]:
    if differing:
        return "differs", "; ".join([_detail(differing), *(f"not decided: {one}" for one in undecided)])
    return ("not decided", "; ".join(undecided)) if undecided else ("passed", _agreed(actual))


def _unseen(actual: Facts) -> Iterator[str]:
    # what the case returns, if nothing of that can be compared, and no gradient
    names = ("output", "grad of ")
    if not any(name.startswith(names) and _is_value(name, one) for name, one in actual.items()):
        outputs = ((name, one) for name, one in actual.items() if name.startswith("output"))
        yield from (f"{name} is of type {one.type}" for name, one in outputs if isinstance(one, Uncomparable))


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
    also = f"; also {_some([one.name for one in others])}" if others else ""
    return f"{worst.name}: {worst.how}{also}"


def _some(names: list[str]) -> str:
    further = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {further} more" if further > 0 else "")


def _disagreements(actual: Facts, expected: Facts, verdicts: _Verdicts) -> Iterator[Disagreement]:
    for name in dict.fromkeys((*actual, *expected)):
        if name in actual and name in expected:
            a, b = actual[name], expected[name]
            how, size = value_difference(a, b)
            laid_out = False
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
                how, size = verdicts.of(name, a, b) or (how, size)
                if not how:
                    verdicts.tolerated(name, size)
                laid_out = not how or _differ_in_dtype(a, b)
                if strides := stride_difference(name, a, b):
                    how, size = f"{strides}; {how or 'its values agree'}", math.inf
            if how:
                yield Disagreement(name, how, size, laid_out)
        elif not name.startswith(STEPPED):  # a step that torch.compile compiled is not observed
            has, lacks = ("compiled", "eager") if name in actual else ("eager", "compiled")
            yield Disagreement(name, f"{has} has it, {lacks} has not", math.inf)


def value_difference(actual: Fact, expected: Fact) -> tuple[str, float]:
    """How two values differ, "" if they agree, and the size of the largest difference."""
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _tensors(actual, expected)
    if not isinstance(actual, torch.Tensor) and not isinstance(expected, torch.Tensor):
        same = actual.identity == expected.identity or _close(actual, expected)
    else:
        same = False
    texts = fact_text(actual, expected), fact_text(expected, actual)
    return ("", 0.0) if same else (f"compiled gives {texts[0]}, eager gives {texts[1]}", math.inf)


def _differ_in_dtype(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    # and in nothing else
    if actual.dtype == expected.dtype:
        return False
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True, check_dtype=False)
    except (AssertionError, RuntimeError, NotImplementedError, TypeError):
        return False
    return True


def _tensors(actual: torch.Tensor, expected: torch.Tensor) -> tuple[str, float]:
    if actual.dtype != expected.dtype and actual.shape == expected.shape:
        values = "its values agree" if _differ_in_dtype(actual, expected) else "its values differ, too"
        return f"compiled gives {actual.dtype}, eager gives {expected.dtype}; {values}", math.inf
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split()), _relative(actual, expected)
    except (RuntimeError, NotImplementedError, TypeError):  # a dtype without arithmetic
        if digest(actual).bits != digest(expected).bits:
            return f"the bits of two tensors of {actual.dtype} differ", math.inf
        return "", 0.0
    return "", _relative(actual, expected)


def stride_difference(name: str, actual: torch.Tensor, expected: torch.Tensor) -> str:
    """The difference in strides of a returned tensor; "": none.

    The strides of a gradient do not matter, nor do those of dimensions with one element.
    """
    if not name.startswith("output") or actual.shape != expected.shape or actual.layout != torch.strided:
        return ""
    strides = [
        [stride for stride, n in zip(one.stride(), one.shape, strict=True) if n > 1]
        for one in (actual, expected)
    ]
    if strides[0] == strides[1] or 0 in actual.shape:
        return ""
    return f"compiled gives strides {actual.stride()}, eager gives {expected.stride()}"


class _Verdicts:
    """The verdicts of a referee on the tensors whose bits differ."""

    def __init__(self, referee: Referee | None) -> None:
        self._referee = referee
        self._explained: dict[str, Judged] = {}
        self.other_numbers: list[str] = []
        self._stepped: list[str] = []
        self.off_and_drawn: list[str] = []
        self._without: list[str] = []
        self._tolerated: list[str] = []
        self.by_tolerances: list[str] = []  # results on which fixed tolerances decide
        self.eager_repeats = True

    def of(self, name: str, actual: torch.Tensor, expected: torch.Tensor) -> tuple[str, float] | None:
        """The disagreement and its size; None: the referee cannot decide."""
        alike = actual.shape == expected.shape and actual.dtype == expected.dtype
        strided = actual.layout == expected.layout == torch.strided
        if not (alike and strided):
            return None
        judged = None
        if self._referee is not None:
            if digest(actual).bits == digest(expected).bits:
                return "", 0.0
            judged = self._referee.judge(name, actual, expected)
        if judged is None:
            self.by_tolerances.append(name)
            return None
        if judged.verdict == "no reference":
            self.eager_repeats &= UNREPEATABLE not in judged.missing
            why = _some(list(judged.missing))
            if not is_inexact(expected) and any(one.startswith(BITS_AS) for one in judged.missing):
                rounded = "whose last bits rounding decides"
                self._tolerated.append(f"{name}: it has no reference, because of {why}, {rounded}")
                return "", 0.0
            self.by_tolerances.append(name)
            self._without.append(f"fixed tolerances decide on {name}: it has no reference, because of {why}")
            return None
        if judged.verdict == "compiled is off":
            self.off_and_drawn += [name] if judged.still_off else []
            return judged_text(judged), judged.compiled.farthest
        self.other_numbers += [name] if judged.other_numbers else []
        self._stepped += [name] if judged.as_compiled else []
        self._explained[name] = judged
        return "", 0.0

    def tolerated(self, name: str, size: float) -> None:
        """Note a result that agrees with eager's by fixed tolerances.

        size -- its distance, as a share of eager's largest value

        Where all values are as small as the tolerances, these decide nothing.
        """
        if self._referee is not None and _TOLERATED < size < math.inf:
            self._tolerated.append(
                f"{name}: it has no reference, and is {size:.0%} of eager's largest value away, "
                "which fixed tolerances allow for so small values"
            )

    def eager_off(self) -> tuple[str, ...]:
        """The results for which eager is off."""
        return tuple(name for name, one in self._explained.items() if one.verdict == "eager is off")

    def undecided(self) -> list[str]:
        """The results of which neither compiled nor eager is right."""
        return [
            f"{name}: {apart_text(one)}"
            for name, one in self._explained.items()
            if one.verdict == "not decided"
        ] + self._tolerated

    def less_precise(self) -> list[str]:
        """The results that are within rounding, and much farther from exact than eager's; the worst first."""
        some = [(name, one) for name, one in self._explained.items() if one.less_precise]
        some.sort(key=lambda each: -each[1].compiled.farthest)
        return [less_precise_text(name, one) for name, one in some]

    def remarks(self) -> Iterator[str]:
        """Further remarks on the results, including those that agree."""
        within = {name: one for name, one in self._explained.items() if one.verdict == "within rounding"}
        if within:
            name, most = max(within.items(), key=lambda one: one[1].compiled.farthest)
            far = "" if isinstance(most.compiled.value, int) else within_text(most)
            counted = "1 result, " if len(within) == 1 else f"{len(within)} results, most of all "
            yield f"within rounding: {counted}{name}{far}"
        yield from (f"{name}: {undecided_text(one)}" for name, one in within.items() if one.undecided)
        if less := self.less_precise():
            yield f"less precise than eager: {_some(less)}"
        decided = {name: one for name, one in self._explained.items() if one.verdict != "not decided"}
        yield from (f"{name}: {judged_text(one)}" for name, one in decided.items() if name not in within)
        if self.other_numbers:
            yield f"other random numbers than eager's in {_some(self.other_numbers)}"
        if self._stepped:
            why = "torch.compile traces optimizers with bias corrections of float32"
            yield f"less precise than eager, because {why}: {_some(self._stepped)}"
        yield from self._without
        if self._referee is not None and self._referee.failure:
            yield f"no reference: {self._referee.failure}"


def _relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype or actual.layout != torch.strided:
        return math.inf
    wide = torch.complex128 if actual.is_complex() else torch.float64
    if not actual.numel():
        return 0.0
    largest = float(expected.to(wide).abs().nan_to_num().max())
    apart = float((actual.to(wide) - expected.to(wide)).abs().max())
    return math.inf if math.isnan(apart) else apart / largest if largest else math.inf


def _close(actual: Fact, expected: Fact) -> bool:
    # numbers that came out of tensors, mostly of float32
    if not (isinstance(actual, PlainValue) and isinstance(expected, PlainValue)):
        return False
    if actual.type != expected.type or actual.type not in ("float", "complex"):
        return False
    a, b = complex(actual.text), complex(expected.text)
    return abs(a - b) <= 1e-5 + 1.3e-6 * abs(b)


def fact_text(fact: Fact, other: Fact) -> str:
    """A value as text, without the properties that it shares with another one."""
    match fact:
        case torch.Tensor():
            return f"a tensor of {fact.dtype}"
        case PlainValue():
            return fact.text
        case Container():
            return fact.text(other)
        case Uncomparable():
            return fact.type
