"""Judge variations of a case, as often as its symptom needs."""

from __future__ import annotations

import math
from collections.abc import Callable

from tracing.analyze.bisect.search import Judgement
from tracing.analyze.bisect_case.evaluation import Evaluate, Evaluation, Variation
from tracing.analyze.bisect_case.symptom import Symptom, judged_as

_MISSED = 0.01  # accepted probability of missing a symptom that occurs sometimes
_MOST = 25  # evaluations of one build


def repeats_for(bad: int, of: int) -> int:
    """The number of good evaluations after which a build counts as good.

    bad, of -- evaluations of the whole compiler that showed the symptom, and all
    """
    if bad == of:
        return 1
    return min(_MOST, math.ceil(math.log(_MISSED) / math.log(1 - bad / of)))


class Prober:
    """Judges by one symptom."""

    def __init__(self, evaluate: Evaluate, symptom: Symptom, repeats: int, tried: Callable[[], None]) -> None:
        """Judge builds.

        repeats -- good evaluations that make a build good; one bad evaluation makes it bad
        tried   -- is called after each build
        """
        self.symptom = symptom
        self._evaluate, self._repeats, self._tried = evaluate, repeats, tried

    def judge(self, variation: Variation) -> Judgement:
        """The verdict on a build."""
        judgements = []
        for number in range(self._repeats):
            judgements.append(judged_as(self._evaluate(variation, number).symptom, self.symptom))
            if judgements[-1].verdict == "bad":
                break
        self._tried()
        order = ("bad", "skip", "good")
        return min(judgements, key=lambda one: order.index(one.verdict))

    def evaluation(self, variation: Variation) -> Evaluation:
        """An evaluation of a build; a cached one if it was judged before."""
        return self._evaluate(variation, 0)
