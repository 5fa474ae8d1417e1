"""The verdicts of the referee, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracing.model.numbers import number_text
from tracing.numerics.eager_difference import EagerDifference
from tracing.numerics.verdict import Judged

NAMED = 5  # names that a text has


def judged_text(judged: Judged) -> str:
    """A verdict as text, with the element that is farthest from its exact value."""
    if judged.verdict == "both are off":
        return _alike_text(judged)
    compiled = judged.verdict == "compiled is off"
    ours, others = (judged.compiled, judged.eager) if compiled else (judged.eager, judged.compiled)
    where = _where(ours.index)
    exact = f", where exact arithmetic gives {number_text(judged.exact)}" if compiled else ""
    element = f"{judged.verdict}: {where} is {number_text(ours.value)}{exact}"
    are = "element is" if ours.elements == 1 else "elements are"
    farther = f"{ours.elements} {are} farther away than rounding explains"
    if not ours.elements:  # each is within the limit of one element, and their mean is not
        farther = f"{ours.mean:.2g} on average, where rounding explains {ours.typical:g}"
    if isinstance(ours.value, int):  # rounding explains no difference of integers
        return f"{element}; wrong elements: {ours.elements}"
    return (
        f"{element}, {ours.farthest:.2g} roundings away, where {ours.limit:g} are allowed and "
        f"{'eager' if compiled else 'compiled'} is {others.farthest:.2g} away at most; "
        f"{farther}"
    )


def within_text(judged: Judged) -> str:
    """How far a result within rounding is from exact: ` by 25 roundings of 64 allowed`."""
    ours = judged.compiled
    if ours.farthest > ours.limit:  # which passes, as eager's is about as far away
        return f" by {ours.farthest:.2g} roundings, eager's by {judged.eager.farthest:.2g}"
    return f" by {ours.farthest:.2g} roundings of {ours.limit:g} allowed"


def undecided_text(judged: Judged) -> str:
    """The elements of a result that agrees of which it is not known whether rounding explains them."""
    elements = "1 element is" if judged.undecided == 1 else f"{judged.undecided} elements are"
    return f"{elements} compared with the rounding of larger elements only, and beyond the own one"


def less_precise_text(name: str, judged: Judged) -> str:
    """How far a result is from exact, and eager's: `output is 8.7 roundings from exact, eager's 0.53`."""
    ours, eagers = judged.compiled.farthest, judged.eager.farthest
    return f"{name} is {ours:.2g} roundings from exact, eager's {eagers:.2g}"


def apart_text(judged: Judged) -> str:
    """The difference between compiled and eager, if exact arithmetic does not decide between them."""
    if judged.unlike_draws:
        return f"compiled and eager have different random numbers: {judged.unlike_draws}"
    if judged.beyond:
        return f"rounding decides it, but no rounding that was tried gives {judged.beyond} of its integers"
    one = judged.apart
    assert one is not None
    differ = f"differ from each other in {one.elements} of {one.of} elements"
    if not isinstance(one.exact, complex) and not math.isfinite(one.exact):
        return f"compiled and eager {differ}, and exact arithmetic gives no number: {_values(one)}"
    if one.unknown or isinstance(one.compiled, int):
        everywhere = " everywhere" if one.exact == one.eager else ""
        agrees = f"exact arithmetic agrees with neither{everywhere}"
        return f"compiled and eager {differ}, and {agrees}: {_values(one)}"
    return f"compiled and eager are {_far_text(judged)}, and {differ} by more than 1/16: {_values(one)}"


def _alike_text(judged: Judged) -> str:
    # both are off, and pass
    ours, apart = judged.compiled, judged.apart
    if isinstance(ours.value, int):
        differing = (
            f", and differ from each other in {apart.elements} of {apart.of} elements" if apart else ""
        )
        return f"compiled and eager are inexact alike{differing}"
    own = ""
    if apart and apart.elements:
        differ = f"differ from each other in {apart.elements} of {apart.of} elements by more than 1/16"
        own = f", and {differ}: {_values(apart)}"
    if math.isinf(ours.farthest):
        element = f"{_where(ours.index)} is {number_text(ours.value)}"
        exact = f"where exact arithmetic gives {number_text(judged.exact)}"
        return f"compiled and eager agree with each other, and not with float64: {element}, {exact}{own}"
    if apart and not own:
        own = f", and differ from each other by at most {100 * apart.relative:.2g} %"
    return f"compiled and eager are about equally far from exact, {_far_text(judged)}{own}"


def _far_text(judged: Judged) -> str:
    return f"{judged.compiled.farthest:.2g} and {judged.eager.farthest:.2g} roundings from float64"


def _values(one: EagerDifference) -> str:
    compiled, eager, exact = map(number_text, (one.compiled, one.eager, one.exact))
    return f"{_where(one.index)} is {compiled}, in eager {eager}, in exact arithmetic {exact}"


def _where(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"
