"""Integers of a kernel as sums of independent variables, and the values that such sums take.

A variable takes every value from 0 to its extent, whatever the others are: a program id, the axis of a
tensor, the iteration of a loop. A digit is the quotient or remainder of such a sum by a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Literal, NamedTuple, TypeAlias

VariableKind: TypeAlias = Literal["program", "axis", "iteration"]


class Variable(NamedTuple):
    """It takes the values 0:extent."""

    kind: VariableKind
    number: int  # x, y, z are 0, 1, 2; the axis of the tensor; the loop's counter in the TTIR
    extent: int


class Digit(NamedTuple):
    """`number // weight % extent`; without the remainder where the number has no more digits."""

    number: Form
    weight: int
    extent: int


Term: TypeAlias = Variable | Digit


@dataclass(frozen=True, slots=True)
class Form:
    """A constant, and a sum of variables or digits times their coefficients, none of which is 0."""

    constant: int
    terms: frozenset[tuple[Term, int]] = frozenset()

    @classmethod
    def of(cls, constant: int, coefficients: Mapping[Term, int]) -> Form:
        used = ((term, times) for term, times in coefficients.items() if times and term.extent > 1)
        return cls(constant, frozenset(used))

    @property
    def low(self) -> int:
        """The least value."""
        return self.constant + sum(min(0, times * (term.extent - 1)) for term, times in self.terms)

    @property
    def high(self) -> int:
        """The greatest value."""
        return self.constant + sum(max(0, times * (term.extent - 1)) for term, times in self.terms)

    def __add__(self, other: Form) -> Form:
        coefficients = dict(self.terms)
        for term, times in other.terms:
            coefficients[term] = coefficients.get(term, 0) + times
        return Form.of(self.constant + other.constant, coefficients)

    def __mul__(self, factor: int) -> Form:
        return Form.of(self.constant * factor, {term: times * factor for term, times in self.terms})

    def expanded(self, axis: int) -> Form:
        """The same of a tensor that has one more axis, which is inserted before `axis`."""
        return Form(self.constant, frozenset((_expanded(term, axis), times) for term, times in self.terms))


def _expanded(term: Term, axis: int) -> Term:
    if isinstance(term, Digit):
        return term._replace(number=term.number.expanded(axis))
    return term._replace(number=term.number + (term.kind == "axis" and term.number >= axis))


def quotient(number: Form, divisor: int) -> Form | None:
    """`number // divisor` for a number from 0 on and a divisor above 0; None: it is no sum of variables."""
    multiple, rest = _split(number, divisor)
    if rest.low >= 0 and rest.high < divisor:
        return multiple
    digits = _as_digit(number, divisor)
    if digits is None:
        return None
    return _digit(digits.number, digits.weight * divisor, -(-digits.extent // divisor))


def remainder(number: Form, divisor: int) -> Form | None:
    """`number % divisor` for a number from 0 on and a divisor above 0; None: it is no sum of variables."""
    _, rest = _split(number, divisor)
    if rest.low >= 0 and rest.high < divisor:
        return rest
    digits = _as_digit(number, divisor)
    return None if digits is None else _digit(digits.number, digits.weight, divisor)


def _as_digit(number: Form, divisor: int) -> Digit | None:
    # the same number as a digit, whose quotient and remainder by this divisor are digits, too
    single = _single(number)
    if single is not None:
        return single if _is_last(single) or single.extent % divisor == 0 else None
    return None if number.constant or _digits(number) else Digit(number, 1, number.high + 1)


def _split(number: Form, divisor: int) -> tuple[Form, Form]:
    # number == divisor * first + second
    first = Form.of(number.constant // divisor, {term: times // divisor for term, times in number.terms})
    return first, number + first * -divisor


def _single(number: Form) -> Digit | None:
    match number.constant, [*number.terms]:
        case 0, [(Digit() as digit, 1)]:
            return digit
    return None


def _digits(number: Form) -> list[Digit]:
    return [term for term, _ in number.terms if isinstance(term, Digit)]


def _is_last(digit: Digit) -> bool:
    return digit.extent > digit.number.high // digit.weight


def _digit(number: Form, weight: int, extent: int) -> Form:
    return Form.of(0, {Digit(number, weight, extent): 1})


def reached(steps: Iterable[tuple[int, int]]) -> int | None:
    """The count of values from 0 on that a sum takes, all of them; None: it may leave some out.

    steps -- of each variable: its coefficient and its extent
    """
    count = 1
    for times, extent in sorted(steps):
        if times < 0 or times > count:
            return None
        count += times * (extent - 1)
    return count


def written(address: Form, below_zero: Iterable[Form]) -> int | None:
    """The count of elements from 0 on that a store writes, all of them; None: it may leave some out.

    address    -- in elements
    below_zero -- the mask is true where all of these are negative
    """
    if address.constant:
        return None
    strides = dict(address.terms)
    bounds = {digit.number: digit.number.high + 1 for digit in _digits(address)}
    for form in below_zero:
        if form.high >= 0:
            index = Form(0, form.terms)
            bounds[index] = min(bounds.get(index, index.high + 1), -form.constant)
    steps: list[tuple[int, int]] = []
    bounded: set[Term] = set()
    for index, bound in bounds.items():
        own = {term for term, _ in index.terms}
        gapless = reached((times, term.extent) for term, times in index.terms) is not None
        taken = _steps(index, bound, strides) if gapless and not _digits(index) and bound > 0 else None
        if taken is None or own & bounded:
            return None
        steps += taken
        bounded |= own
    return reached([*steps, *((times, term.extent) for term, times in strides.items())])


def _steps(index: Form, bound: int, strides: dict[Term, int]) -> list[tuple[int, int]] | None:
    # takes the strides of an index that has the values 0:bound, or those of its digits
    digits = sorted((d for d in strides if isinstance(d, Digit) and d.number == index), key=_weight)
    times = {divmod(strides.pop(term, 0), factor) for term, factor in index.terms}
    if not digits:
        [*exact] = (whole for whole, rest in times if not rest)
        return [(exact[0], bound)] if len(exact) == len(times) == 1 else None
    weights = accumulate((digit.extent for digit in digits), mul, initial=1)
    together = all(digit.weight == weight for digit, weight in zip(digits, weights, strict=False))
    last, rest = divmod(bound, digits[-1].weight)
    if times != {(0, 0)} or not together or rest or last > digits[-1].extent:
        return None
    extents = [*(digit.extent for digit in digits[:-1]), last]
    return [(strides.pop(digit), extent) for digit, extent in zip(digits, extents, strict=True)]


def _weight(digit: Digit) -> int:
    return digit.weight
