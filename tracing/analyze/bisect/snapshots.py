"""Find the first IR of a compilation that a judge calls bad, by judging each IR as recorded.

This needs no build, so it also covers passes that every build needs. It needs a judge that reads the IR
between passes, in one language or in several.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracing.analyze.bisect.search import BuildTried, Judgement, Step


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The IR after one pass and before the next."""

    layer: str  # the layer of the pass
    step: Step  # the pass, or another step that produced the IR
    language: str  # "ttir", "ttgir", "mlir", "llir", "mir", "ptx", "amdgcn"
    text: str


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """The judgement of one snapshot."""

    snapshot: Snapshot
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The border between IR that is good and IR that is bad."""

    good: JudgedSnapshot
    bad: JudgedSnapshot
    between: tuple[JudgedSnapshot, ...]  # that cannot be judged
    odd: tuple[JudgedSnapshot, ...]  # other snapshots that are bad although a later one is good


@dataclass(frozen=True, slots=True)
class NoBorder:
    """The reason why no border is seen."""

    because: str
    seen: tuple[JudgedSnapshot, ...] = ()  # the snapshots that turn bad


def looked_at(
    snapshots: Iterable[Snapshot], judged: Callable[[Snapshot], Judgement]
) -> Generator[BuildTried, None, list[JudgedSnapshot]]:
    """Return the judgement of each snapshot whose text differs from the previous one's."""
    seen: list[JudgedSnapshot] = []
    text = None
    for one in snapshots:
        if one.text != text:
            seen.append(JudgedSnapshot(one, judged(one)))
            text = one.text
        yield BuildTried()
    return seen


def first_seen(seen: Sequence[JudgedSnapshot]) -> FirstSeen | NoBorder:
    """The one step at which good IR turns bad.

    Bad IR before any good IR is noted: the judge may not support the language of that IR.
    """
    judged = [one for one in seen if one.judgement.verdict != "skip"]
    turns = [
        (a, b) for a, b in pairwise(judged) if (a.judgement.verdict, b.judgement.verdict) == ("good", "bad")
    ]
    if not judged:
        return NoBorder("the judge could judge no IR between passes")
    if len(turns) > 1:
        return NoBorder(
            f"good IR turns bad {len(turns)} times, and good in between", tuple(b for _, b in turns)
        )
    if not turns:
        verdicts = {one.judgement.verdict for one in judged}
        same = f"all {len(judged)} IRs that can be judged are {next(iter(verdicts))}"
        return NoBorder(same if len(verdicts) == 1 else "bad IR turns good, and none turns bad")
    good, bad = turns[0]
    between = seen[seen.index(good) + 1 : seen.index(bad)]
    odd = [one for one in judged[: judged.index(good)] if one.judgement.verdict == "bad"]
    return FirstSeen(good, bad, tuple(between), tuple(odd))
