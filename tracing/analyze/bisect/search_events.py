"""The events that the searches of a bisection yield; `tracing bisect` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.search import BuildTried, Changed, FirstBad, Judgement, Suspect, Undecided
from tracing.analyze.bisect.snapshots import FirstSeen

Answer: TypeAlias = FirstBad | FirstSeen | Changed | Undecided


@dataclass(frozen=True, slots=True)
class Building:
    """A slow build begins."""

    what: str


@dataclass(frozen=True, slots=True)
class Searching:
    """A search begins; a `BuildTried` follows for each build that it tries."""

    what: str
    most: int  # builds


@dataclass(frozen=True, slots=True)
class FullPipeline:
    """The verdict on the full pipeline."""

    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Executed:
    """The IR between passes was executed."""

    meaning: Meaning


@dataclass(frozen=True, slots=True)
class NotSearched:
    """The judge reads no artefact of this layer."""

    layer: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The result was judged without each MLIR pass that changed something."""

    names: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class Answered:
    """A layer was searched."""

    answer: Answer
    weighed: Answer  # with the result of executing the IR


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The search of all layers ended without an accused pass."""

    suspects: tuple[Suspect, ...]  # passes that are not ruled out
    rest: tuple[str, ...]  # steps that no search can leave out


SearchEvent: TypeAlias = (
    Building | Searching | BuildTried | FullPipeline | Executed | NotSearched | LeftOut | Answered | NoAnswer
)
