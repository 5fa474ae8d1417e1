"""Ask an unreliable judge several times about each build, and compute the confidence of the answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracing.analyze.bisect.probes import Judge
from tracing.analyze.bisect.search import JudgeAnswer, Judgement


@dataclass(frozen=True, slots=True)
class Votes:
    """The answers of a judge about one build."""

    good: int
    bad: int

    @property
    def minority(self) -> int:
        return min(self.good, self.bad)


class Repeated:
    """Asks a judge several times about each build, and uses the majority."""

    def __init__(self, judge: Judge, times: int) -> None:
        self._judge = judge
        self.times = times
        self.stages = judge.stages
        self.votes: list[Votes] = []  # by build: the calls and their verdicts

    @property
    def key(self) -> Sequence[str]:
        return [*self._judge.key, f"{self.times} times"]

    def __call__(self, folder: Path) -> Judgement:
        judgements = [self._judge(folder) for _ in range(self.times)]
        counts = Counter(one.verdict for one in judgements)
        self.votes.append(Votes(counts["good"], counts["bad"]))
        verdict, most = counts.most_common(1)[0]
        if 2 * most <= self.times:
            return Judgement("skip", f"the judge said {_counted(counts)} of one build", final=False)
        last = next(one for one in judgements if one.verdict == verdict)
        often = "" if most == self.times else f", {most} of {self.times} times"
        return Judgement(verdict, f"{last.detail}{often}", final=last.final)


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence of an answer that is based on a judge which contradicts itself."""

    calls: int
    against: int  # calls that contradict the majority for the same build
    error: float  # upper bound of the rate of wrong calls
    wrong: float  # probability that one verdict or more is wrong


def confidence(votes: Sequence[Votes]) -> Confidence:
    """The probability that every majority is right.

    votes -- of each build that the answer rests on, one or more

    The error rate of one call is estimated as the rate of calls that contradicted the majority, plus two
    standard deviations. Calls are assumed independent, and good and bad builds equally likely.
    """
    calls = sum(one.good + one.bad for one in votes)
    against = sum(one.minority for one in votes)
    share = (against + 1) / (calls + 2)  # Source: Laplace's rule of succession
    error = min(0.5, share + 2 * math.sqrt(share * (1 - share) / (calls + 3)))
    odds = (1 - error) / error
    wrong = sum(1 / (1 + odds ** abs(one.good - one.bad)) for one in votes)
    return Confidence(calls, against, error, min(1.0, wrong))


def _counted(counts: Counter[JudgeAnswer]) -> str:
    return " and ".join(f"{verdict} {times} times" for verdict, times in counts.items())
