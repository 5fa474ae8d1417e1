"""Search a case that is wrong when compiled: from the model to the step of the compiler, and the kernel.

1. Does it go wrong, and how often?
2. At which stage first? ATen executes the graph of each stage; no step is left out.
3. In which graph? The other graphs stay at the previous stage.
4. In which part of that stage, and in which step of the part? Steps are left out.

Yields events; the last one is CaseAnswer, or CaseTried if the case is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from statistics import median

from tracing.analyze.bisect.delta_debugging import minimal
from tracing.analyze.bisect.search import Judgement
from tracing.analyze.bisect.search_events import Building
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseEvent,
    CaseTried,
    Culprit,
    KernelCode,
    OtherCode,
    PartUndecided,
    Planned,
    StageBlamed,
    StageTried,
    TogetherBlamed,
)
from tracing.analyze.bisect_case.evaluation import Evaluate, Evaluation, OwnKernel, Variation, WrittenKernel
from tracing.analyze.bisect_case.part_search import search_part
from tracing.analyze.bisect_case.prober import Prober, repeats_for
from tracing.analyze.bisect_case.stages import (
    CPP,
    EAGER,
    FUSION,
    GRAPHS,
    INDUCTOR,
    INLINING,
    INSIDE,
    LOWERINGS,
    NO_ATEN,
    STAGES,
    UNCOMPILED,
    CompileStage,
    stage,
)
from tracing.analyze.bisect_case.symptom import commonest, judged_as
from tracing.errors import Problem

_WRITTEN = (FUSION, INLINING, LOWERINGS)  # parts whose fault may be in the generated code
_CHANCE = "mend the program so that its end does not depend on chance; each build executes it once more"
_MOST_IN_EAGER = 25
_IN_EAGER = 5  # evaluations without any compiler, of a symptom that every compile had
_CONFIRMING = 4  # builds after a border was found, and before it


class CaseSearch:
    """One case."""

    def __init__(
        self,
        evaluate: Evaluate,
        times: int,
        tried: Callable[[], None],
        *,
        cpp: bool = False,
        eager_is_right: Callable[[int], bool] = lambda times: True,
    ) -> None:
        """Search with builds of `evaluate`.

        times -- evaluations with the whole compiler, to measure how often the case goes wrong
        tried -- is called after each build
        cpp   -- `evaluate` has the stage CPP, too
        eager_is_right -- whether so many evaluations without any compiler are right
        """
        self._eager_is_right = eager_is_right
        self._evaluate, self._times, self._tried, self._cpp = evaluate, times, tried, cpp
        self._seconds: list[float] = []

    def events(self) -> Iterator[CaseEvent]:
        """Search.

        Raises Problem if the case fails in eager, or if its symptoms vary too much to follow one.
        """
        yield Building(f"compiling and running the case, {self._times} times")
        whole = [self._timed(Variation(), number) for number in range(self._times)]
        wrong = [one.symptom for one in whole if one.symptom.kind not in ("right", "eager is off")]
        if not wrong:
            off = [one.symptom for one in whole if one.symptom.kind == "eager is off"]
            symptom = (off or [whole[0].symptom])[0]
            yield CaseTried(symptom, 0, self._times, 1, whole[0].eager_kernels)
            return
        symptom = commonest(wrong)
        if symptom.kind == "no answer":
            raise Problem(f"nothing can be searched: {symptom.text}", symptom.remedy)
        bad = sum(judged_as(one, symptom).verdict == "bad" for one in wrong)
        repeats = repeats_for(bad, self._times)
        if not self._eager_is_right(_IN_EAGER if repeats == 1 else min(_MOST_IN_EAGER, 3 * repeats)):
            raise Problem(
                "nothing can be searched: without torch.compile it is wrong now and then, too", _CHANCE
            )
        yield CaseTried(symptom, bad, self._times, repeats)
        prober = Prober(self._timed, symptom, repeats, self._tried)
        stage_blamed = yield from _stage(prober)
        yield from self._in_stage(prober, stage_blamed)

    def _timed(self, variation: Variation, number: int) -> Evaluation:
        evaluation = self._evaluate(variation, number)
        self._seconds.append(evaluation.seconds)
        return evaluation

    def _in_stage(self, prober: Prober, stage_blamed: StageBlamed) -> Iterator[CaseEvent]:
        blamed = stage_blamed.stage
        stages = [blamed, *stage_blamed.unknown]
        parts = list(dict.fromkeys(part for one in stages for part in one.parts))
        base = Variation(blamed.name)
        if parts and prober.evaluation(base).steps:  # a build that dies tells none
            yield self._plan(prober.evaluation(base), parts)
        culprits: list[Culprit | PartUndecided | TogetherBlamed] = []
        if len(prober.evaluation(base).steps.get(GRAPHS, ())) > 1:
            graph = yield from search_part(prober, base, GRAPHS)
            if graph is not None:
                culprits.append(graph)
            if isinstance(graph, Culprit) and graph.enough.verdict == "bad":
                base = base.with_only(GRAPHS, [one.label for one in graph.steps])
        inner = yield from _parts(prober, base, parts)
        if not inner:
            together = yield from _together(prober, base, parts)
            inner = [together] if together else _left_over(prober.evaluation(base))
        culprits += inner
        triton = bool(prober.evaluation(base).kernels)
        lowered = any(isinstance(one, Culprit) and one.part in _WRITTEN for one in culprits)
        if self._cpp and triton and lowered:
            yield from _other_code(prober, base)
        kernels = _kernels(prober.evaluation(base), culprits) if blamed.name == INDUCTOR else ()
        yield CaseAnswer(
            prober.symptom, blamed, culprits, kernels, triton, stage_blamed.own_kernels,
            stage_blamed.code,
        )  # fmt: skip

    def _plan(self, whole: Evaluation, parts: Sequence[str]) -> Planned:
        counts = [len(whole.steps.get(part, ())) for part in (GRAPHS, *parts)]
        counts = [one for one in counts if one]
        deepest = math.ceil(math.log2(max(counts, default=1) + 1))
        builds = len(counts) + 2 * (deepest + _CONFIRMING)
        return Planned(builds, builds * median(self._seconds))


def _stage(prober: Prober) -> Generator[CaseEvent, None, StageBlamed]:
    # from the last stage down to the first that is right
    blamed = stage(INDUCTOR)
    unknown: list[CompileStage] = []
    for lower in reversed(STAGES[:-1]):
        yield Building(f"executing {lower.executes}")
        judgement = _judged(prober, lower)
        yield StageTried(lower, judgement)
        if judgement.verdict == "good":
            answer = _blamed(prober, blamed, lower, unknown)
            yield answer
            return answer
        if judgement.verdict == "bad":
            blamed, unknown = lower, []
        else:
            unknown.append(lower)
    answer = _blamed(prober, blamed, None, unknown)
    yield answer
    return answer


def _blamed(
    prober: Prober, blamed: CompileStage, after: CompileStage | None, unknown: Sequence[CompileStage]
) -> StageBlamed:
    added = _added(prober, blamed, after)
    code: KernelCode = "kernel"
    if prober.symptom.only_layout:
        code = "allocation"
    elif prober.symptom.only_gradients and not any(one.backward for one in added):
        code = "backward formula"
    return StageBlamed(blamed, after, tuple(unknown), added, code)


def _judged(prober: Prober, one: CompileStage) -> Judgement:
    if one.name == UNCOMPILED:
        itself, traced = (_own(prober.evaluation(Variation(name))) for name in (UNCOMPILED, EAGER))
        if itself.keys() != traced.keys():
            return Judgement("skip", "it does not launch the kernels that Dynamo's graphs launch")
    return prober.judge(Variation(one.name))


def _added(prober: Prober, blamed: CompileStage, after: CompileStage | None) -> tuple[OwnKernel, ...]:
    # the hand-written kernels that a stage launches, and the stage before it, or eager, does not
    build = prober.evaluation(Variation(blamed.name))
    before = prober.evaluation(Variation(after.name)).own_kernels if after else build.eager_kernels
    known = {one.name for one in before}
    return tuple(kernel for name, kernel in _own(build).items() if name not in known)


def _own(build: Evaluation) -> dict[str, OwnKernel]:
    return {one.name: one for one in build.own_kernels}


def _parts(
    prober: Prober, base: Variation, parts: Sequence[str]
) -> Generator[CaseEvent, None, list[Culprit | PartUndecided | TogetherBlamed]]:
    # the first part that contains a culprit, and the steps inside of it
    for part in parts:
        answer = yield from search_part(prober, base, part)
        if answer is not None:
            inside = yield from _parts(prober, base, INSIDE.get(part, ()))
            return [answer, *inside]
    return []


def _together(
    prober: Prober, base: Variation, parts: Sequence[str]
) -> Generator[CaseEvent, None, TogetherBlamed | None]:
    steps = prober.evaluation(base).steps
    known = [part for part in parts if steps.get(part)]

    def without(chosen: Sequence[str]) -> Variation:
        build = base
        for part in chosen:
            build = build.up_to(part, 0)
        return build

    if len(known) < 2:
        return None
    yield Building("leaving out several parts together")
    if prober.judge(without(known)).verdict != "good":
        return None
    chosen = minimal(known, lambda some: prober.judge(without(some)).verdict == "good")
    together = TogetherBlamed(tuple(chosen), prober.judge(without(chosen)))
    yield together
    return together


def _left_over(whole: Evaluation) -> list[Culprit | PartUndecided | TogetherBlamed]:
    steps = whole.steps.get(NO_ATEN, ())
    because = "no build leaves them out, and nothing else is to blame"
    return [PartUndecided(NO_ATEN, steps, because)] if steps else []


def _other_code(prober: Prober, base: Variation) -> Iterator[CaseEvent]:
    if prober.evaluation(base).own_kernels:
        yield OtherCode(Judgement("skip", "its hand-written kernels need Triton, so it is not executed"))
        return
    yield Building("compiling to C++ instead of Triton")
    yield OtherCode(prober.judge(replace(base, stage=CPP)))


def _kernels(
    evaluation: Evaluation, culprits: Sequence[Culprit | PartUndecided | TogetherBlamed]
) -> tuple[WrittenKernel, ...]:
    # those that compute a node of the innermost culprit that has nodes
    for culprit in reversed([one for one in culprits if isinstance(one, Culprit)]):
        nodes = {node for one in culprit.steps for node in one.nodes}
        named = [one for one in evaluation.kernels if nodes & set(one.nodes)]
        if named and culprit.part != FUSION:
            return tuple(named)
        if named:  # the kernel of the nodes that were fused has most of them
            most = max(len(nodes & set(one.nodes)) for one in named)
            return tuple(one for one in named if len(nodes & set(one.nodes)) == most)
    return ()
