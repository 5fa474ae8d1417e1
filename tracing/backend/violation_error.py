"""The error of a strict backend: all violations of a graph, and a script that reproduces them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracing.model import GraphKind, Violation
from tracing.upstream.inductor.backend_compile import BackendError
from tracing.upstream.torch.dynamo import compile_id

_log = logging.getLogger(__name__)


class ConstraintsViolated(BackendError):
    """A graph violates constraints; nothing of it was executed.

    violations -- all that are decided, by the ATen graph that they are in
    repro      -- a script that compiles Dynamo's graph with the same constraints
    """

    def __init__(
        self, backend: str, violations: Mapping[GraphKind, Sequence[Violation]], repro: Path
    ) -> None:
        self.violations = tuple(one for part in violations.values() for one in part)
        self.repro = repro
        count = len(self.violations)
        lines = [f"{backend}: {count} violation{'s' if count != 1 else ''} of constraints"]
        for kind, part in violations.items():
            lines += [f"  {_part(kind)}: {one.text}" for one in part]
        super().__init__("\n".join([*lines, f"  repro: python {repro}"]))


def warn(backend: str, kind: GraphKind, violations: Sequence[Violation]) -> None:
    """Log the violations of one ATen graph as warnings; of undecided ones, one for each constraint."""
    undecided: dict[str, list[Violation]] = {}
    for one in violations:
        if one.decided:
            _log.warning("%s: %s: %s", backend, _part(kind), one.text)
        else:
            undecided.setdefault(one.constraint, []).append(one)
    for constraint, first in undecided.items():
        text = f"{len(first)} nodes undecided by {constraint}, the first: {first[0].text}"
        _log.warning("%s: %s: %s", backend, _part(kind), text)


def decided(violations: Mapping[GraphKind, Sequence[Violation]]) -> dict[GraphKind, list[Violation]]:
    """The decided violations; graphs without one are omitted."""
    parts = {kind: [one for one in part if one.decided] for kind, part in violations.items()}
    return {kind: part for kind, part in parts.items() if part}


def _part(kind: GraphKind) -> str:
    return " ".join(one for one in ("graph", compile_id(), kind) if one)
