"""The events that the search for a small graph yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tracing.analyze.minify.graph_edit import GraphEdit
from tracing.analyze.minify.trial import Trial, TrialVerdict


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The next step of the search begins."""

    what: str  # "leaving out nodes"


@dataclass(frozen=True, slots=True)
class CandidateTried:
    """A candidate was executed, or its answer was known."""

    edit: GraphEdit
    trial: Trial
    verdict: TrialVerdict


@dataclass(frozen=True, slots=True)
class Minimal:
    """The smallest candidate that fails as the whole does; the last event."""

    edit: GraphEdit
    trial: Trial
    executions: int  # the whole's included
    finished: bool  # False: the limit of executions ended the search


MinifyEvent: TypeAlias = SearchStep | CandidateTried | Minimal
