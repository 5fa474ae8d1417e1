"""Find the steps of one part that make a case wrong: a pass, a lowering, a fusion."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

from tracing.analyze.bisect.search import Judgement, border
from tracing.analyze.bisect.search_events import Building
from tracing.analyze.bisect_case.case_events import CaseEvent, Culprit, PartTried, PartUndecided
from tracing.analyze.bisect_case.evaluation import CompileStep, Variation
from tracing.analyze.bisect_case.prober import Prober
from tracing.analyze.bisect_case.stages import WITHOUT

MOST_CULPRITS = 8  # maximum of culprits that are searched one after another
MOST_KINDS = 24  # of steps that are left out one by one
MOST_NEEDED = 6  # maximum of printed steps that a culprit needs

# None: the part is not to blame, or cannot be left out
PartSearch: TypeAlias = Generator[CaseEvent, None, Culprit | PartUndecided | None]


def search_part(prober: Prober, base: Variation, part: str) -> PartSearch:
    """Search one part of a build that is bad.

    base -- the variation to start from; steps that are not searched stay as in it

    Cost: a build for the whole part, log2(steps) and 2 more if it is to blame; more for several culprits. If
    the build without the whole part cannot be judged, one for each kind of steps.
    """
    steps = _steps(prober, base, part)
    if not steps and prober.symptom.kind != "dies":
        return None
    yield Building(f"{part}: {WITHOUT[part]}")
    without = prober.judge(base.up_to(part, 0))
    yield PartTried(part, len(steps), without)
    if without.verdict == "bad" or not steps:
        return None
    yield Building(f"{part}: searching {len(steps)} steps")
    search = _culprit if without.verdict == "good" else _single
    answer = search(prober, base, part, steps)
    if answer is not None:
        yield answer
    return answer


def _steps(prober: Prober, build: Variation, part: str) -> Sequence[CompileStep]:
    known = prober.evaluation(build).steps.get(part, ())
    if known or prober.symptom.kind != "dies":
        return known
    # a build that dies tells none; without them it may end, and tells what it left out
    return prober.evaluation(build.up_to(part, 0)).steps.get(part, ())


def _single(prober: Prober, base: Variation, part: str, steps: Sequence[CompileStep]) -> Culprit | None:
    # if a step cannot be left out, each kind is searched by itself
    kinds = list(dict.fromkeys(one.kind for one in steps))
    for kind in kinds[:MOST_KINDS]:
        accused = [one for one in steps if one.kind == kind]
        good = _without(prober, base, part, accused)
        if good.verdict == "good":
            accused = _halved(prober, base, part, [], accused)
            return _confirmed(prober, base, part, steps, accused, _without(prober, base, part, accused))
    return None


def _halved(
    prober: Prober, base: Variation, part: str, others: Sequence[CompileStep], alike: Sequence[CompileStep]
) -> list[CompileStep]:
    # other steps, and those of one kind that have to be left out with them: halved while one half is enough
    enough = True
    while enough and len(alike) > 1:
        half = len(alike) // 2
        enough = False
        for some in (alike[:half], alike[half:]):
            if _without(prober, base, part, [*others, *some]).verdict == "good":
                alike, enough = some, True
                break
    return [*others, *alike]


def _without(prober: Prober, base: Variation, part: str, steps: Sequence[CompileStep]) -> Judgement:
    return prober.judge(base.leaving_out(part, [one.label for one in steps]))


def _culprit(
    prober: Prober, base: Variation, part: str, steps: Sequence[CompileStep]
) -> Culprit | PartUndecided:
    accused: list[CompileStep] = []
    rest = base
    while len(accused) < MOST_CULPRITS:
        first = _first(prober, rest, part)
        if isinstance(first, PartUndecided):
            return first if not accused else _undecided(part, accused, "leaving them out is not enough")
        accused.append(first)
        good = _without(prober, base, part, accused)
        if good.verdict != "good":
            alike = [one for one in steps if one.kind == first.kind and one not in accused]
            if alike and _without(prober, base, part, [*accused, *alike]).verdict == "good":
                accused = _halved(prober, base, part, accused, alike)
                good = _without(prober, base, part, accused)
        if good.verdict == "good":
            return _confirmed(prober, base, part, steps, accused, good)
        rest = base.leaving_out(part, [one.label for one in accused])
        if good.verdict == "skip":
            return _undecided(part, accused, f"the build without them cannot be judged: {good.detail}")
    return _undecided(part, accused, "without all of them the result is wrong as well")


def _first(prober: Prober, base: Variation, part: str) -> CompileStep | PartUndecided:
    steps = _steps(prober, base, part)
    last_good, first_bad = border(len(steps), lambda on: prober.judge(base.up_to(part, on)).verdict)
    if first_bad - last_good > 1 or first_bad > len(steps):
        return _undecided(part, steps[last_good:first_bad], "no build between the two can be judged")
    # labels may depend on earlier steps: read them from a build in which the step is the last one, or,
    # if that build dies, the first one that is left out
    builds = (prober.evaluation(base.up_to(part, count)) for count in (first_bad, last_good))
    return next((one.steps[part] for one in builds if one.steps.get(part)), steps)[last_good]


def _confirmed(
    prober: Prober,
    base: Variation,
    part: str,
    steps: Sequence[CompileStep],
    accused: Sequence[CompileStep],
    good: Judgement,
) -> Culprit:
    enough = prober.judge(base.with_only(part, [one.label for one in accused]))
    needed: Sequence[CompileStep] = ()
    if enough.verdict == "good":
        needed = _needed(prober, base, part, accused, [one for one in steps if one not in accused])
    return Culprit(part, tuple(accused), len(steps), good, enough, tuple(needed))


def _needed(
    prober: Prober,
    base: Variation,
    part: str,
    accused: Sequence[CompileStep],
    others: Sequence[CompileStep],
) -> Sequence[CompileStep]:
    # the shortest prefix of the others that makes the case wrong ends with a step that is needed; repeat with
    # the steps before that one
    needed: list[CompileStep] = []

    def made(count: int) -> Judgement:
        some = [*accused, *needed, *others[:count]]
        return prober.judge(base.with_only(part, [one.label for one in some]))

    while made(0).verdict != "bad":
        count = border(len(others), lambda on: made(on).verdict)[1]
        if len(needed) == MOST_NEEDED or made(count).verdict != "bad" or count == 0:
            return ()
        needed.insert(0, others[count - 1])
        others = others[: count - 1]
    return needed


def _undecided(part: str, among: Sequence[CompileStep], because: str) -> PartUndecided:
    return PartUndecided(part, tuple(among), because)
