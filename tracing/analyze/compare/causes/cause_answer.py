"""The answer for one difference: its cause, or the earlier difference that it follows from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    OperatorCause,
    OtherTarget,
    OtherTensor,
    Overrun,
    Uninitialised,
    UnknownCause,
    WrittenElsewhere,
)
from tracing.analyze.compare.causes.copied_writes import COPIES


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
        lambda one: isinstance(one, OperatorCause) and bool(one.numbers or one.draws),
        lambda one: isinstance(one, Host) and one.made,
        lambda one: not isinstance(one, UnknownCause) and not _is_copy(one),
        lambda one: not isinstance(one, UnknownCause),
    )
    return next((n for n, test in enumerate(tests) if test(answer)), len(tests))


def _is_copy(answer: CauseAnswer) -> bool:
    return isinstance(answer, OperatorCause) and answer.names[0] in COPIES


def with_others(best: CauseAnswer, answers: Sequence[CauseAnswer]) -> CauseAnswer:
    """The best answer, which also names the operators that are as suspect as its own."""
    if not isinstance(best, OperatorCause) or (best.proven and best.runs == "ab"):
        return best
    alike = [one for one in answers if isinstance(one, OperatorCause) and _alike(one) == _alike(best)]
    calls = [*(call_text(one) for one in alike), *(call for one in alike for call in one.also)]
    return replace(best, also=tuple(call for call in dict.fromkeys(calls) if call != call_text(best)))


def _alike(cause: OperatorCause) -> tuple[object, ...]:
    return cause.proven, cause.runs, cause.how.what if isinstance(cause.how, OtherTarget) else None


def call_text(cause: OperatorCause) -> str:
    """The call of its operator, in run a if there is one."""
    side = 0 if cause.names[0] else 1
    return f"{cause.names[side]}({cause.arguments[side]})"


def passed_through(answer: Cause | Follows, operator: str) -> Cause | Follows:
    """The cause, if an operator copied the bytes."""
    if isinstance(answer, (OperatorCause, Host, WrittenElsewhere, Uninitialised, Overrun)):
        return replace(answer, through=(operator, *answer.through))
    return answer
