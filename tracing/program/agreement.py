"""Compares the results and the state of the compiled case with those of eager."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from tracing.digest.host import digest
from tracing.model import Container, Outcome, PlainValue, Uncomparable
from tracing.program.state import AFTERWARDS, STEPPED
from tracing.program.structure import Fact, Facts

NAMED = 5  # results that are named, of those that disagree
_NUMBERS = ("int", "float", "complex")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One value that is not as in eager."""

    name: str
    how: str
    size: float  # of the largest difference, relative to the largest value of eager; inf: of another kind


def judged(actual: Facts, expected: Facts) -> Outcome:
    """Whether a compiled case agrees with eager: in structure, and in numbers as assert_close compares them.

    The detail has the worst disagreement first, and names others.
    """
    found = sorted(_disagreements(actual, expected), key=lambda one: -one.size)
    if found:
        return Outcome("differs", _detail(found))
    without = [name for name, one in actual.items() if isinstance(one, Uncomparable)]
    return Outcome("passed", _agreed(actual) + (f"; not compared: {_some(without)}" if without else ""))


def _agreed(actual: Facts) -> str:
    values = [name for name, one in actual.items() if _is_value(name, one)]
    results = [name for name in values if not name.endswith(AFTERWARDS)]
    if len(results) > 1:
        return f"all {len(results)} results agree with eager"
    if results:
        return "the result agrees with eager"
    if values:  # whether the case changed them is not known here
        return "it returns no tensor and has no gradient; its arguments agree with eager afterwards"
    return "it returns no tensor and has no gradient: nothing was compared with eager"


def _is_value(name: str, fact: Fact) -> bool:
    # of an optimizer's settings nobody counts the numbers
    number = isinstance(fact, PlainValue) and fact.type in _NUMBERS and name.startswith("output")
    return number or isinstance(fact, torch.Tensor)


def _detail(found: list[Disagreement]) -> str:
    worst, *others = found
    also = f"; also {_some([one.name for one in others])}" if others else ""
    return f"{worst.name}: {worst.how}{also}"


def _some(names: list[str]) -> str:
    further = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {further} more" if further > 0 else "")


def _disagreements(actual: Facts, expected: Facts) -> Iterator[Disagreement]:
    for name in dict.fromkeys((*actual, *expected)):
        if name in actual and name in expected:
            how, size = _compared(actual[name], expected[name])
            if how:
                yield Disagreement(name, how, size)
        elif not name.startswith(STEPPED):  # torch.compile compiles a step so that it is not seen
            has, lacks = ("compiled", "eager") if name in actual else ("eager", "compiled")
            yield Disagreement(name, f"{has} has it, {lacks} has not", math.inf)


def _compared(actual: Fact, expected: Fact) -> tuple[str, float]:
    # how the two differ, "" if they agree, and by how much
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _tensors(actual, expected)
    if not isinstance(actual, torch.Tensor) and not isinstance(expected, torch.Tensor):
        same = actual.identity == expected.identity or _close(actual, expected)
    else:
        same = False
    texts = _text(actual, expected), _text(expected, actual)
    return ("", 0.0) if same else (f"compiled gives {texts[0]}, eager gives {texts[1]}", math.inf)


def _tensors(actual: torch.Tensor, expected: torch.Tensor) -> tuple[str, float]:
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split()), _relative(actual, expected)
    except (RuntimeError, NotImplementedError, TypeError):  # a dtype without arithmetic
        if digest(actual).bits != digest(expected).bits:
            return f"the bits of two tensors of {actual.dtype} differ", math.inf
    return "", 0.0


def _relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype or actual.layout != torch.strided:
        return math.inf
    wide = torch.complex128 if actual.is_complex() else torch.float64
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


def _text(fact: Fact, other: Fact) -> str:
    match fact:
        case torch.Tensor():
            return f"a tensor of {fact.dtype}"
        case PlainValue():
            return fact.text
        case Container():
            return fact.text(other)
        case Uncomparable():
            return fact.type
