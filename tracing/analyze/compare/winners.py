"""Decides whether a change of configuration comes from an autotuner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tracing.analyze.compare.signature_pair import SettingChange
from tracing.model import Winner
from tracing.store import Run


class RecordedWinners:
    """The choices of autotuners in two runs, by kernel."""

    def __init__(self, a: Run, b: Run) -> None:
        self._configs = tuple(self._read(run) for run in (a, b))

    def _read(self, run: Run) -> dict[str, list[dict[str, str]]]:
        configurations: dict[str, list[dict[str, str]]] = defaultdict(list)
        for one in run.records(Winner):
            if len(one.candidates) != 1:
                configurations[one.kernel].append({name: str(value) for name, value in one.config.items()})
        return configurations

    def explain(self, kernel: str, changes: Sequence[SettingChange]) -> bool:
        """True if autotuners of both runs chose exactly these values; the grid follows from them."""
        named = [change for change in changes if change.name != "grid"]
        return bool(named) and all(
            any(config.get(change.name) == value for config in configs.get(kernel, ()))
            for change in named
            for configs, value in zip(self._configs, (change.a, change.b), strict=True)
        )
