"""Combine the result of leaving passes out with the result of executing the IR between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.layers import MLIR, Bisection
from tracing.analyze.bisect.search import Changed, FirstBad, Judgement, Suspect, Undecided
from tracing.analyze.bisect.search_events import Answer
from tracing.analyze.bisect.snapshots import FirstSeen

_UNSEEN = "execution does not reveal a race, a layout, a hint, or what only other inputs show"


class Evidence:
    """Checks the answers of the layers against `meaning`, the result of executing the IR."""

    def __init__(self, bisection: Bisection) -> None:
        self.meaning = Meaning()
        self._bisection = bisection

    def weighed(self, answer: Answer, names: Mapping[str, Judgement]) -> Answer:
        """The answer of a layer, or a more precise one that follows from executing the IR.

        names -- the judgements of builds without the passes of one name, as far as they were made
        """
        step = self.meaning.certain
        if isinstance(answer, FirstBad) and answer.layer == MLIR and self._is_equal(answer):
            return self._unavoidable_suspected(answer)
        if isinstance(answer, Undecided) and answer.layer == MLIR and step is None:
            return replace(answer, suspects=self._ordered(answer.suspects))
        if step is None or isinstance(answer, (FirstSeen, Changed)):
            return answer
        if isinstance(answer, FirstBad) and answer.layer == MLIR and answer.step.name == step.name:
            return answer
        if isinstance(answer, Undecided) and answer.layer != MLIR:
            return answer
        all_out = names.get(step.name) or self._without(step.name)
        if all_out.verdict != "bad":
            return Changed(MLIR, step, self.meaning.what, all_out)
        if isinstance(answer, Undecided):
            return answer
        because = f"{step} changes what the IR computes, and without it the result is bad as well"
        suspects = (Suspect(answer.step, "it turns a good result bad"), Suspect(step, self.meaning.what))
        return Undecided(answer.layer, because, suspects)

    def _is_equal(self, answer: FirstBad) -> bool:
        # True if no difference was seen in the IR up to this pass, and a later pass may be the faulty one
        last = self.meaning.last
        return bool(answer.unavoidable) and last is not None and last.index >= answer.step.index

    def _unavoidable_suspected(self, answer: FirstBad) -> Undecided:
        because = (
            f"with {answer.step} the result turns bad, although, {self.meaning.equal}: it is to blame, or a "
            "later pass that cannot be left out compiles its output wrongly"
        )
        among = (
            Suspect(one, "it reads the output of that pass") for one in (*answer.unavoidable, answer.step)
        )
        return Undecided(answer.layer, because, self._ordered(tuple(among)))

    def _ordered(self, suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
        # the passes that were not executed come first
        last = self.meaning.last.index if self.meaning.last else -1
        why = f"{self.meaning.equal}; {_UNSEEN}"
        seen = (Suspect(one.step, why) for one in suspects if one.step.index <= last)
        return (*(one for one in suspects if one.step.index > last), *seen)

    def _without(self, name: str) -> Judgement:
        every = frozenset(one.index for one in self._bisection.passes if one.name == name)
        return self._bisection.judged(every, anew=True)
