"""Find the pass of a pipeline that makes its result bad, by leaving passes out.

A pass that runs several times is one suspect: a fault is in its code. So all of its runs are left out
together, including those that changed nothing here, because in another build they may. The candidates are the
passes without which the result is good.

Then the faulty run of that pass is located. IR is good if the rest of a pipeline compiles it to a good
result, with all passes or without one candidate. The origin of good IR was good, so there is one border: the
last good IR and the first IR without a good result are those before and after one run of one pass.

The answer lists what remains undecided: later passes that cannot be left out work on the output of this pass,
and may be the faulty ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from tracing.analyze.bisect.search import (
    BuildTried,
    FirstBad,
    JudgeAnswer,
    Judgement,
    Step,
    Suspect,
    Undecided,
    border,
    detail_text,
    require_pair,
)

Dropped: TypeAlias = frozenset[int]
ALIKE = 4  # maximum of listed passes with the same fault


@dataclass(frozen=True, slots=True)
class Instance:
    """One run of a pass in the full pipeline."""

    index: int
    name: str
    changed: bool  # the IR

    @property
    def step(self) -> Step:
        return Step(self.index, self.name)


class Builds(Protocol):
    """Builds of a pipeline without some of its passes, by index."""

    def judged(self, dropped: Dropped, *, anew: bool = False) -> Judgement:
        """The judgement of a build; `anew`: build it from its source, and judge it anew."""

    def failure(self, dropped: Dropped) -> str:
        """The reason why it cannot be built; "" if it can."""


def suspicious(instances: Sequence[Instance]) -> list[str]:
    """The names of the passes that changed something, in order: others are not to blame, nor left out."""
    return list(dict.fromkeys(one.name for one in instances if one.changed))


@dataclass
class LeaveOut:
    """A search over one pipeline, whose full build is known to be bad.

    Cost: a build and a judgement for each pass name that changed something, some more to locate the run of
    the pass, and 2 or 3 to confirm the answer.
    """

    layer: str
    instances: Sequence[Instance]
    builds: Builds
    full: Judgement  # of the full pipeline
    good_until: int = -1  # the IR after the pass of this index is known to be good
    names: Mapping[str, Judgement] = field(default_factory=dict)  # of the build without any run of it

    def search(self) -> Generator[BuildTried, None, FirstBad | Undecided]:
        """Search, and return, the pass; one event for each of `candidates`.

        Raises Contradiction if the answer does not hold when it is built and judged a second time.
        """
        self.names = yield from self._tried()
        good = [name for name, judgement in self.names.items() if judgement.verdict == "good"]
        family = [self._all(name) for name in good] or self._reduced()
        if not family:
            return Undecided(self.layer, self._no_good(), self.suspects())
        faulty = self._first_faulty(family)
        if isinstance(faulty, Undecided):
            return faulty
        return self._confirmed(*faulty, good)

    def candidates(self) -> list[str]:
        """The names of the passes that may be to blame."""
        return suspicious([one for one in self.instances if one.index > self.good_until])

    def _tried(self) -> Generator[BuildTried, None, dict[str, Judgement]]:
        judgements = {}
        for name in self.candidates():
            judgements[name] = self.builds.judged(self._all(name))
            yield BuildTried()
        return judgements

    def _reduced(self) -> list[Dropped]:
        # all passes that can be left out together; none if that build is not good either
        later = [one.index for one in self.instances if one.index > self.good_until]
        dropped = droppable(later, self.builds.failure)
        return [dropped] if dropped and self.builds.judged(dropped).verdict == "good" else []

    def _first_faulty(self, family: Sequence[Dropped]) -> tuple[Instance, Dropped] | Undecided:
        """The run that makes good IR bad, and the passes whose omission makes it good."""
        start = self.good_until
        while True:
            runs = [one for one in self._changed(family) if one.index > start]
            points = [start, *(one.index for one in runs)]

            good, bad = border(len(runs), partial(self._verdict, family, points))
            if bad - good > 1:
                because = "no build between the last good and the first bad could be judged"
                among = tuple(Suspect(one.step, "between the two") for one in runs[good:bad])
                return Undecided(self.layer, because, among)
            run, left_out = runs[good], self._best(family, points[good])[1]
            others = self._other_ends(run, family)
            if not others:
                return run, left_out
            start, family = run.index, others

    def _verdict(self, family: Sequence[Dropped], points: Sequence[int], at: int) -> JudgeAnswer:
        return self._best(family, points[at])[0]

    def _best(self, family: Sequence[Dropped], index: int) -> tuple[JudgeAnswer, Dropped]:
        # the best judgement of builds from the IR after the run of this index
        verdicts: list[JudgeAnswer] = []
        for left_out in family:
            dropped = frozenset(one for one in left_out if one > index)
            judgement = self.builds.judged(dropped) if dropped else self.full
            if judgement.verdict == "good":
                return "good", left_out
            verdicts.append(judgement.verdict)
        return ("bad" if "bad" in verdicts else "skip"), frozenset()

    def _other_ends(self, run: Instance, family: Sequence[Dropped]) -> list[Dropped]:
        # other builds from the IR after a run that are good
        for left_out in self._ends(run.index):
            if left_out not in family and self._best([left_out], run.index)[0] == "good":
                return [left_out]
        return []

    def _ends(self, index: int) -> list[Dropped]:
        # without all runs of one name, or without one run if later passes need the others
        later = [one for one in self.instances if one.index > index]
        ends: list[Dropped] = []
        for name in suspicious(later):
            all_of_it = frozenset(one.index for one in later if one.name == name)
            ends.append(all_of_it)
            if self.builds.failure(all_of_it):
                ends += [frozenset({one.index}) for one in later if one.name == name and one.changed]
        return ends

    def _confirmed(self, run: Instance, left_out: Dropped, good: Collection[str]) -> FirstBad | Undecided:
        later = frozenset(one for one in left_out if one > run.index)
        without = self.builds.judged(later | {run.index}, anew=True)
        with_it = self.builds.judged(later, anew=True)
        require_pair(run.step, without, with_it)
        all_out = self.builds.judged(self._all(run.name), anew=True)
        if all_out.verdict == "bad":
            because = f"{run.step} turns the result bad, and without any {run.name} it is bad as well"
            same = (
                Suspect(one.step, "it turns a good result bad") for one in self._that_do_it(run, left_out)
            )
            return Undecided(self.layer, because, (*same, *self.suspects()))
        needed = [one for one in self.instances if one.name in good and one.name != run.name and one.changed]
        return FirstBad(
            self.layer,
            run.step,
            len(self.instances),
            with_it,
            without,
            all_out,
            self._alike(run) if all_out.verdict == "good" else (),
            tuple(one.step for one in needed if one.index < run.index),
            tuple(one.step for one in self._unavoidable(run.index)),
        )

    def _alike(self, run: Instance) -> tuple[Step, ...]:
        ours = self._all(run.name)
        same = [one for one in self.instances if one.index in ours and one.changed and one != run]
        without_one = (self.builds.judged(self._all(run.name) - {one.index}) for one in same)
        return tuple(
            one.step for one, judgement in zip(same, without_one, strict=True) if judgement.verdict == "bad"
        )

    def _that_do_it(self, run: Instance, left_out: Dropped) -> list[Instance]:
        # several passes may have the fault: leave out those that were named, and name the next one
        faulty = [run]
        while len(faulty) < ALIKE:
            gone = frozenset().union(*(self._all(one.name) for one in faulty))
            runs = [one for one in self.instances if one.index in left_out - gone]
            if not runs or self.builds.judged(gone).verdict != "bad":
                break
            points = [-1, *(one.index for one in runs)]
            good, bad = border(len(runs), partial(self._without_too, gone, left_out, points))
            if bad - good > 1:
                break
            faulty.append(runs[good])
        return faulty

    def _without_too(self, gone: Dropped, left_out: Dropped, points: Sequence[int], at: int) -> JudgeAnswer:
        later = frozenset(one for one in left_out if one > points[at])
        return self.builds.judged(gone | later).verdict

    def _unavoidable(self, index: int) -> list[Instance]:
        names = {name for name, judgement in self.names.items() if judgement.verdict == "skip"}
        return [one for one in self.instances if one.index > index and one.changed and one.name in names]

    def suspects(self) -> tuple[Suspect, ...]:
        """The passes that are not ruled out."""
        return tuple(
            Suspect(one.step, why)
            for one in self.instances
            if one.changed and one.index > self.good_until and (why := self._why(self.names[one.name]))
        )

    def _why(self, judgement: Judgement) -> str:
        if judgement.verdict == "skip":
            return f"without it: {judgement.detail}"
        if judgement.verdict == "good":
            return "without it the result is good"
        same = judgement.detail.partition(":")[0] == self.full.detail.partition(":")[0]
        return "" if same else f"without it the result is bad otherwise{detail_text(judgement)}"

    def _no_good(self) -> str:
        return f"of {len(self.names)} builds, each without one pass, none is good"

    def _all(self, name: str) -> Dropped:
        later = (one for one in self.instances if one.index > self.good_until)
        return frozenset(one.index for one in later if one.name == name)

    def _changed(self, family: Sequence[Dropped]) -> list[Instance]:
        union = frozenset().union(*family)
        return [one for one in self.instances if one.index in union and one.changed]


def droppable(indices: Sequence[int], failure: Callable[[Dropped], str]) -> Dropped:
    """A set of passes that can be left out together, collected from the end; the others are mandatory.

    failure -- why a pipeline without these passes cannot be built; ""

    Cost: one build a pass at most, fewer where neighbours can be left out together.
    """
    dropped: Dropped = frozenset()

    def add(group: Sequence[int]) -> None:
        nonlocal dropped
        if not group:
            return
        if not failure(dropped | set(group)):
            dropped |= set(group)
        elif len(group) > 1:
            add(group[len(group) // 2 :])
            add(group[: len(group) // 2])

    for end in range(len(indices), 0, -4):
        add(indices[max(0, end - 4) : end])
    return dropped
