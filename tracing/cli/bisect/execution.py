"""What a kernel's IR computes, pass by pass, as far as it can be executed: evidence without a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tracing.analyze.bisect.execution import Meaning, first_change
from tracing.analyze.bisect.layers import MLIR, Bisection
from tracing.analyze.bisect.search import Changed, FirstBad, Judgement, Suspect, Undecided
from tracing.analyze.bisect.snapshots import FirstSeen, Snapshot
from tracing.compiler.generic_text import generic_texts
from tracing.errors import Problem
from tracing.mlir.types import Unknown

Answer: TypeAlias = FirstBad | FirstSeen | Changed | Undecided
_UNSEEN = "executed, it is right; a race, a layout or a hint is not seen"


def meaning_of(snapshots: Sequence[Snapshot], seconds: float) -> Meaning:
    """Execute the IR that passes leave, as far as that is needed.

    snapshots -- of MLIR, in order; the first enters the compilation

    Cost: two executions where nothing changes, some ten otherwise; 0.1 to 5 s.
    """
    row = [one for at, one in enumerate(snapshots) if at == 0 or one.text != snapshots[at - 1].text]
    try:
        texts = generic_texts([one.text for one in row], seconds=seconds)
        change = first_change(len(row), texts.__getitem__)
    except (Problem, Unknown):
        return Meaning()
    if isinstance(change, int):
        return Meaning(last=row[change].step)
    return Meaning(tuple(one.step for one in row[change.before + 1 : change.after + 1]), change.what)


class Evidence:
    """Weighs what leaving out says against what executing the IR says."""

    def __init__(self, bisection: Bisection, seconds: float) -> None:
        self.meaning = Meaning()
        self._bisection, self._seconds = bisection, seconds

    def execute(self, snapshots: Sequence[Snapshot]) -> None:
        """Look for the pass that changes what the IR computes."""
        self.meaning = meaning_of(snapshots, self._seconds)

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
