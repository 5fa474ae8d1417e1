"""The events that the search of a case yields; `tracing bisect CASE` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.bisect.search import Judgement
from tracing.analyze.bisect.search_events import Building
from tracing.analyze.bisect_case.evaluation import CompileStep, OwnKernel, WrittenKernel
from tracing.analyze.bisect_case.stages import AOT, EAGER, GRAPHS, UNCOMPILED, CompileStage
from tracing.analyze.bisect_case.symptom import Symptom


@dataclass(frozen=True, slots=True)
class CaseTried:
    """The case was evaluated with the whole compiler; `bad` of `of` evaluations show the symptom."""

    symptom: Symptom
    bad: int
    of: int
    repeats: int  # evaluations of each build from now on
    eager_kernels: tuple[OwnKernel, ...] = ()  # that eager launches, too: comparing does not check them


# backward formula: only gradients are wrong, and no backward pass launches the kernels
# allocation: shapes, strides or dtypes are wrong, which no kernel chooses
KernelCode: TypeAlias = Literal["kernel", "backward formula", "allocation"]


@dataclass(frozen=True, slots=True)
class StageTried:
    """The graph of a stage was executed."""

    stage: CompileStage
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class StageBlamed:
    """The first stage that is wrong."""

    stage: CompileStage
    after: CompileStage | None  # the previous stage, which is right; None: there is none
    unknown: tuple[CompileStage, ...]  # stages between the two that cannot be judged
    own_kernels: tuple[OwnKernel, ...] = ()  # that it launches, and the previous stage does not
    code: KernelCode = "kernel"  # what of these kernels and the code that launches them is to blame


@dataclass(frozen=True, slots=True)
class Planned:
    """The maximum cost of the rest of the search, if no part has several culprits."""

    builds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PartTried:
    """A build without all steps of a part."""

    part: str
    count: int  # steps; 0: unknown, because the builds with and without them die
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Culprit:
    """The steps of a part without which the case is right."""

    part: str
    steps: tuple[CompileStep, ...]
    of: int  # steps of the part
    good: Judgement  # the build without these steps
    enough: Judgement  # the build without all other steps of the part: bad if these steps are enough
    needed: tuple[CompileStep, ...] = ()  # steps that these need to make the case wrong

    @property
    def several(self) -> bool:
        """True if steps of more than one kind have to be left out."""
        return len({one.kind for one in self.steps}) > 1


@dataclass(frozen=True, slots=True)
class PartUndecided:
    """The case is right without this part, but no step of it could be named."""

    part: str
    among: tuple[CompileStep, ...]
    because: str


@dataclass(frozen=True, slots=True)
class TogetherBlamed:
    """No single part is to blame: these have to be left out together."""

    parts: tuple[str, ...]
    good: Judgement


@dataclass(frozen=True, slots=True)
class OtherCode:
    """The same graphs with Inductor's C++ code instead of Triton's."""

    judgement: Judgement


@dataclass(frozen=True, slots=True)
class CaseAnswer:
    """The end of the search: what the evidence accuses, from the outermost to the innermost component."""

    symptom: Symptom
    stage: CompileStage
    # from outside to inside: a graph, a part, a step
    culprits: Sequence[Culprit | PartUndecided | TogetherBlamed]
    kernels: tuple[WrittenKernel, ...]  # that compute the accused nodes
    triton: bool = True  # Inductor wrote Triton kernels; False: C++, or nothing
    own_kernels: tuple[OwnKernel, ...] = ()  # hand-written, that take part from this stage on
    code: KernelCode = "kernel"  # what of these kernels and the code that launches them is to blame

    @property
    def decided(self) -> bool:
        """False if only the stage is known, and not its step."""
        if self.own_kernels or self.stage.name in (UNCOMPILED, EAGER, AOT):  # stages without steps
            return True
        inner = [one for one in self.culprits if isinstance(one, TogetherBlamed) or one.part != GRAPHS]
        return any(not isinstance(one, PartUndecided) or len(one.among) == 1 for one in inner)


CaseEvent: TypeAlias = (
    Building
    | CaseTried
    | StageTried
    | StageBlamed
    | Planned
    | PartTried
    | Culprit
    | PartUndecided
    | TogetherBlamed
    | OtherCode
    | CaseAnswer
)
