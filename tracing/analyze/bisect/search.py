"""Find the step of a sequence that first makes a good result bad: LLVM's passes, the assembler's levels.

With none of the steps the result must be good; with all of them it is known to be bad. The answer is the step
between two adjacent numbers of steps of which the lower one is good and the higher one bad. It is a suspect,
not proof: leaving out a step can also hide another step's fault, by removing the input that triggers it.

Undecided searches are reported with the reason. This module is independent of compilers: each layer provides
its probe.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

JudgeAnswer: TypeAlias = Literal["good", "bad", "skip"]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's answer about one build."""

    verdict: JudgeAnswer  # skip: undecided, because the build failed or the judge could not decide
    detail: str = ""
    where: str = ""  # the folder of the build
    final: bool = True  # False: a repetition may give another verdict, so it is not kept


@dataclass(frozen=True, slots=True)
class Step:
    """A step that can be left out."""

    index: int  # the number by which its own tool counts it
    name: str
    unit: str = ""  # the unit that it transforms, unless it is the whole module: "function (softmax)"

    def __str__(self) -> str:
        return f"{self.name}{f' on {self.unit}' if self.unit else ''} (#{self.index})"


class Probe(Protocol):
    def __call__(self, on: int, *, anew: bool = False) -> Judgement:
        """Judge a build with the first `on` steps; `anew`: build and judge anew, whatever is known."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The steps of one layer in order, and the probe that builds with the first n of them."""

    name: str  # "LLVM passes"
    steps: Sequence[Step]
    off: str  # title of a build without all of them: "LLVM without its optional passes"
    probe: Probe
    without: Callable[[str], Judgement] | None = None  # all steps but those of this name


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The step with which a result turns bad."""

    layer: str
    step: Step
    of: int  # steps among which it was searched
    bad: Judgement  # with it and all earlier steps, built and judged anew
    good: Judgement  # without it, built and judged anew
    # the build without all steps of its name; None: the layer cannot leave them out
    all_out: Judgement | None
    alike: tuple[Step, ...] = ()  # other steps of its name, each of which makes the result bad by itself
    needed: tuple[Step, ...] = ()  # other steps without which the result is good, too
    unavoidable: tuple[Step, ...] = ()  # later steps that cannot be left out and read the output of this one


@dataclass(frozen=True, slots=True)
class Changed:
    """A pass of a bad pipeline that changes the values that the IR computes."""

    layer: str
    step: Step
    what: str  # text about one value that differs
    all_out: Judgement  # of the build without any step of its name; not bad


@dataclass(frozen=True, slots=True)
class Suspect:
    """A step that may be to blame."""

    step: Step
    why: str  # the reason why it is not ruled out


@dataclass(frozen=True, slots=True)
class Undecided:
    """The reason why a layer has no answer."""

    layer: str
    because: str
    suspects: tuple[Suspect, ...] = ()
    ruled_out: bool = False  # nothing in this layer is to blame


@dataclass(frozen=True, slots=True)
class BuildTried:
    """An event of a search: one of the builds that `Searching` announced was tried."""


class Contradiction(Exception):
    """A judge gave two different answers about one build."""


def answer_of(search: Generator[object, None, _Result]) -> _Result:
    """Exhaust a search and return its result."""
    while True:
        try:
            next(search)
        except StopIteration as stop:
            value: _Result = stop.value
            return value


def first_bad(layer: Layer) -> Generator[BuildTried, None, FirstBad | Undecided]:
    """Search for the step that turns a layer's result bad, and return it.

    Both ends are judged first: with all steps the result must be bad, with none good. Cost: 2 + log2(steps)
    probes, and 3 to confirm the answer; probes that cannot be judged come on top.

    Raises Contradiction if the answer does not hold when it is built and judged a second time.
    """
    if not layer.steps:
        return Undecided(layer.name, "there is nothing in it that can be left out")
    whole = layer.probe(len(layer.steps))
    yield BuildTried()
    if whole.verdict != "bad":
        judged = f"{whole.verdict}{detail_text(whole)}"
        because = f"the build with every step is {judged}, so a search in it would find nothing"
        return Undecided(layer.name, because)
    start = layer.probe(0)
    yield BuildTried()
    if start.verdict != "good":
        return Undecided(layer.name, _not_good(layer, start), ruled_out=start.verdict == "bad")
    good, bad = yield from narrowed(len(layer.steps), lambda on: layer.probe(on).verdict)
    if bad - good > 1:
        among = layer.steps[good:bad]
        because = "no build between the last good and the first bad could be judged"
        return Undecided(layer.name, because, tuple(Suspect(one, "between the two") for one in among))
    return (yield from _confirmed(layer, good))


def border(count: int, verdict: Callable[[int], JudgeAnswer]) -> tuple[int, int]:
    """Exhaust `narrowed` and return its result."""
    return answer_of(narrowed(count, verdict))


def narrowed(
    count: int, verdict: Callable[[int], JudgeAnswer]
) -> Generator[BuildTried, None, tuple[int, int]]:
    """Search for the last good and first bad number of steps; 0 is known to be good and `count` bad.

    They are not adjacent if no step between them could be judged.
    """
    good, bad = 0, count
    unknown: set[int] = set()
    while between := [on for on in range(good + 1, bad) if on not in unknown]:
        on = min(between, key=lambda on: abs(2 * on - good - bad))
        answer = verdict(on)
        yield BuildTried()
        if answer == "good":
            good = on
        elif answer == "bad":
            bad = on
        else:
            unknown.add(on)
    return good, bad


def detail_text(judgement: Judgement) -> str:
    """` (exit status 1)`."""
    return f" ({judgement.detail})" if judgement.detail else ""


def require_pair(step: Step, good: Judgement, bad: Judgement) -> None:
    """Raise Contradiction unless the builds without and with a step are good and bad, as they were before."""
    if (good.verdict, bad.verdict) != ("good", "bad"):
        raise Contradiction(
            f"asked once more, the build without {step} is {good.verdict}{detail_text(good)} "
            f"and the one with it {bad.verdict}{detail_text(bad)}, where they were good and bad"
        )


def _confirmed(layer: Layer, position: int) -> Generator[BuildTried, None, FirstBad | Undecided]:
    step = layer.steps[position]
    good = layer.probe(position, anew=True)
    yield BuildTried()
    bad = layer.probe(position + 1, anew=True)
    yield BuildTried()
    require_pair(step, good, bad)
    all_out = layer.without(step.name) if layer.without else None
    if all_out is not None and all_out.verdict == "bad":
        because = f"{step} turns the result bad, and without any {step.name} it is bad as well"
        return Undecided(
            layer.name, because, (Suspect(step, "it is the first with which the result is bad"),)
        )
    return FirstBad(layer.name, step, len(layer.steps), bad, good, all_out)


def _not_good(layer: Layer, judgement: Judgement) -> str:
    if judgement.verdict == "bad":
        return f"{layer.off} is bad as well{detail_text(judgement)}"
    return f"{layer.off} cannot be judged{detail_text(judgement)}, so no build is known to be good"
