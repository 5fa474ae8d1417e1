"""The answer for one difference: its cause, or the earlier difference that it follows from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tracing.analyze.compare.divergence_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherTensor,
    Overrun,
    Uninitialised,
    UnknownCause,
    WrittenElsewhere,
)


@dataclass(frozen=True, slots=True)
class Follows:
    """The difference follows from an earlier launch that differs or that only one run has."""


CauseAnswer: TypeAlias = Cause | Follows | None  # None: no known difference


def explanation_rank(answer: CauseAnswer) -> int:
    """Orders answers: the one that explains the most has the lowest rank."""
    tests: tuple[Callable[[CauseAnswer], bool], ...] = (
        lambda one: isinstance(one, Follows),
        lambda one: isinstance(one, Overrun) and one.runs != "ab",
        lambda one: isinstance(one, WrittenElsewhere),
        lambda one: isinstance(one, (OperatorCause, OtherTensor)) and getattr(one, "proven", True),
        lambda one: isinstance(one, Host) and one.proven,  # it may have written equal bits in both runs
        lambda one: isinstance(one, Uninitialised),
        lambda one: isinstance(one, Overrun),
        lambda one: not isinstance(one, UnknownCause),
    )
    return next((n for n, test in enumerate(tests) if test(answer)), len(tests))


def passed_through(answer: Cause | Follows, operator: str) -> Cause | Follows:
    """The cause, if an operator copied the bytes."""
    if isinstance(answer, (OperatorCause, Host, WrittenElsewhere, Uninitialised, Overrun)):
        return replace(answer, through=(operator, *answer.through))
    return answer
