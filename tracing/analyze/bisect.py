"""Which step of a layer first makes a good result bad: MLIR passes, LLVM's passes, the assembler's levels.

A layer is a row of steps that can be left out. With none of them the result must be good, with all of them
it is known to be bad; somewhere in between the last good and the first bad number of steps lie next to each
other, and the step that makes the difference is the answer. It is a suspect and no proof: leaving out a step
also hides faults that others make, by no longer giving them anything to do wrong.

What cannot be told is said with the reason. Nothing here knows compilers: a layer brings its probe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Verdict: TypeAlias = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of one build."""

    verdict: Verdict  # skip: it cannot be told, because it could not be built or because the judge says so
    detail: str = ""
    where: str = ""  # the folder of the build


@dataclass(frozen=True, slots=True)
class Step:
    """What a layer can leave out."""

    index: int  # as its own tool counts
    name: str


class Probe(Protocol):
    def __call__(self, on: int, *, again: bool = False) -> Judgement:
        """Judge a build with the first `on` steps; `again`: build and judge anew, whatever is known."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Steps in their order, and how to build with the first of them."""

    name: str  # "MLIR passes"
    steps: Sequence[Step]
    off: str  # what a build without any of them is, "LLVM without its optional passes"
    probe: Probe
    alone: Callable[[int], Judgement] | None = None  # all steps but the one at this position


@dataclass(frozen=True, slots=True)
class Tried:
    """One probe of a search."""

    on: int
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The step with which a layer's result turns bad."""

    layer: str
    step: Step
    position: int  # of the step in its layer, from 0
    of: int  # steps in the layer
    tried: tuple[Tried, ...]
    bad: Judgement  # with it and all before, built and judged a second time
    good: Judgement  # with those before it alone, likewise
    alone: Judgement | None  # with every step but this one; None: the layer cannot do that


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why a layer does not answer."""

    layer: str
    because: str
    tried: tuple[Tried, ...] = ()


def first_bad(layer: Layer) -> FirstBad | Undecided:
    """The step that turns a layer's result bad.

    Both ends are judged first: with all steps it must be bad, without any good. Cost: 2 + log2(steps) probes,
    and up to 3 to confirm the answer; probes that cannot be judged come on top.
    """
    tried: list[Tried] = []

    def judged(on: int) -> Judgement:
        tried.append(Tried(on, layer.probe(on)))
        return tried[-1].judgement

    if not layer.steps:
        return Undecided(layer.name, "there is nothing in it that can be left out")
    whole = judged(len(layer.steps))
    if whole.verdict != "bad":
        because = (
            f"the build with every step is {whole.verdict}{_said(whole)}, so nothing is to be found in it"
        )
        return Undecided(layer.name, because, tuple(tried))
    start = judged(0)
    if start.verdict != "good":
        return Undecided(layer.name, _not_good(layer, start), tuple(tried))
    good, bad = _border(len(layer.steps), judged)
    if bad - good > 1:
        names = ", ".join(step.name for step in layer.steps[good:bad])
        because = f"no build between the last good and the first bad could be judged: it is one of {names}"
        return Undecided(layer.name, because, tuple(tried))
    return _confirmed(layer, good, tuple(tried))


def optional(steps: Sequence[int], compiles: Callable[[frozenset[int]], bool]) -> list[int]:
    """Steps that can be left out, all of them together, in order; the others are mandatory.

    steps    -- of a pipeline, in order
    compiles -- whether the pipeline reaches its end without these steps

    From the back, so that for each of them the pipeline with all steps before it and with none of the
    optional ones after it was built: those are the very builds that a search needs. Cost: one build a step.
    To try groups would save little: about a quarter is mandatory, and then 0.8 builds a step are the least.
    """
    dropped: frozenset[int] = frozenset()
    for step in reversed(steps):
        if compiles(dropped | {step}):
            dropped |= {step}
    return sorted(dropped)


def _border(count: int, judged: Callable[[int], Judgement]) -> tuple[int, int]:
    # the last good and the first bad number of steps; not neighbours where nothing between could be judged
    good, bad = 0, count
    unknown: set[int] = set()
    while between := [on for on in range(good + 1, bad) if on not in unknown]:
        on = min(between, key=lambda on: abs(2 * on - good - bad))
        verdict = judged(on).verdict
        if verdict == "good":
            good = on
        elif verdict == "bad":
            bad = on
        else:
            unknown.add(on)
    return good, bad


def _confirmed(layer: Layer, position: int, tried: tuple[Tried, ...]) -> FirstBad | Undecided:
    step = layer.steps[position]
    good, bad = layer.probe(position, again=True), layer.probe(position + 1, again=True)
    if (good.verdict, bad.verdict) != ("good", "bad"):
        because = (
            f"the judge contradicts itself: asked again, the build without {step.name} (#{step.index}) is "
            f"{good.verdict} and the one with it {bad.verdict}, where they were good and bad"
        )
        return Undecided(layer.name, because, tried)
    alone = layer.alone(position) if layer.alone else None
    return FirstBad(layer.name, step, position, len(layer.steps), tried, bad, good, alone)


def _not_good(layer: Layer, found: Judgement) -> str:
    if found.verdict == "bad":
        return f"{layer.off} is bad as well{_said(found)}"
    return f"{layer.off} cannot be judged{_said(found)}, so no build is known to be good"


def _said(found: Judgement) -> str:
    return f" ({found.detail})" if found.detail else ""
