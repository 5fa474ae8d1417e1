"""Weigh what leaving out passes says against what executing the IR between them says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.layers import MLIR, Bisection
from tracing.analyze.bisect.search import Changed, FirstBad, Judgement, Suspect, Undecided
from tracing.analyze.bisect.search_events import Answer
from tracing.analyze.bisect.snapshots import FirstSeen

_UNSEEN = "executed, it is right; a race, a layout or a hint is not seen"


class Evidence:
    """Weighs the answers of the layers; `meaning` is what executing the IR says."""

    def __init__(self, bisection: Bisection) -> None:
        self.meaning = Meaning()
        self._bisection = bisection

    def weighed(self, found: Answer, names: Mapping[str, Judgement]) -> Answer:
        """The answer of a layer, or another one, if executing the IR tells more.

        names -- what the judge says without the passes of a name, as far as it was asked
        """
        step = self.meaning.certain
        if isinstance(found, FirstBad) and found.layer == MLIR and self._is_right(found):
            return self._behind(found)
        if isinstance(found, Undecided) and found.layer == MLIR and step is None:
            return replace(found, suspects=self._ordered(found.suspects))
        if step is None or isinstance(found, (FirstSeen, Changed)):
            return found
        if isinstance(found, FirstBad) and found.layer == MLIR and found.step.name == step.name:
            return found
        if isinstance(found, Undecided) and found.layer != MLIR:
            return found
        all_out = names.get(step.name) or self._without(step.name)
        if all_out.verdict != "bad":
            return Changed(MLIR, step, self.meaning.what, all_out)
        if isinstance(found, Undecided):
            return found
        because = f"{step} changes what the IR computes, and without it the result is bad as well"
        suspects = (Suspect(found.step, "it turns a good result bad"), Suspect(step, self.meaning.what))
        return Undecided(found.layer, because, suspects)

    def _is_right(self, found: FirstBad) -> bool:
        # as far as executing tells, and there are others that may not be
        last = self.meaning.last
        return bool(found.behind) and last is not None and last.index >= found.step.index

    def _behind(self, found: FirstBad) -> Undecided:
        because = (
            f"with {found.step} the result turns bad, and executed, what it leaves computes what it was "
            "given: one behind it that cannot be left out may get wrong what it makes"
        )
        among = (Suspect(one, "it works on what that makes") for one in (*found.behind, found.step))
        return Undecided(found.layer, because, self._ordered(tuple(among)))

    def _ordered(self, suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
        # those first that are not seen to leave what the IR computes as it is
        last = self.meaning.last.index if self.meaning.last else -1
        seen = (Suspect(one.step, _UNSEEN) for one in suspects if one.step.index <= last)
        return (*(one for one in suspects if one.step.index > last), *seen)

    def _without(self, name: str) -> Judgement:
        every = frozenset(one.index for one in self._bisection.passes if one.name == name)
        return self._bisection.judged(every, again=True)
