"""One evaluation of a case: what is compiled, and the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tracing.analyze.bisect_case.stages import INDUCTOR
from tracing.analyze.bisect_case.symptom import Symptom


@dataclass(frozen=True, slots=True)
class Variation:
    """How far a case is compiled: up to a stage, and without some steps."""

    stage: str = INDUCTOR
    # by part: the number of steps that are executed; the rest is left out
    first: Mapping[str, int] = field(default_factory=dict)
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # labels of steps that are left out
    # by part: the only steps that are executed
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def up_to(self, part: str, count: int) -> Variation:
        """The same with only the first steps of a part."""
        return replace(self, first={**self.first, part: count})

    def leaving_out(self, part: str, labels: Iterable[str]) -> Variation:
        """The same without some steps of a part."""
        both = (*self.without.get(part, ()), *labels)
        return replace(self, without={**self.without, part: tuple(dict.fromkeys(both))})

    def with_only(self, part: str, labels: Iterable[str]) -> Variation:
        """The same with no other steps of a part."""
        return replace(self, only={**self.only, part: tuple(labels)})


@dataclass(frozen=True, slots=True)
class CompileStep:
    """A step of a compile that can be left out."""

    label: str  # unique within its part
    kind: str  # the common property of steps of one kind: the operator, the pass, the pattern
    detail: str = ""
    nodes: tuple[str, ...] = ()  # FX nodes that the step changes


@dataclass(frozen=True, slots=True)
class WrittenKernel:
    """A Triton kernel that Inductor wrote."""

    name: str
    source: str
    nodes: tuple[str, ...]  # FX nodes that it computes


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A hand-written Triton kernel of the program or of a library."""

    name: str
    python: str  # its first line, "case.py:9"
    backward: bool = False  # a backward pass launches it


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one compile and run."""

    symptom: Symptom
    seconds: float
    steps: Mapping[str, tuple[CompileStep, ...]] = field(default_factory=dict)  # by part, in order
    kernels: tuple[WrittenKernel, ...] = ()
    own_kernels: tuple[OwnKernel, ...] = ()  # that this build launches
    eager_kernels: tuple[OwnKernel, ...] = ()  # that the case launches in eager
    files: Mapping[str, str] = field(default_factory=dict)  # of a program: digests of its imported files


# Compiles and runs a variation; the number counts the evaluations of one variation, from 0.
Evaluate: TypeAlias = Callable[[Variation, int], Evaluation]
