"""Decides whether a change of configuration comes from an autotuner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracing.analyze.compare.signature_pair import SettingChange
from tracing.model import Winner
from tracing.store import Run


class _Choice(NamedTuple):
    key: tuple[str, ...]
    config: Mapping[str, str]


class RecordedWinners:
    """The choices of autotuners in two runs, by kernel."""

    def __init__(self, a: Run, b: Run) -> None:
        self._choices = tuple(self._read(run) for run in (a, b))

    def _read(self, run: Run) -> dict[str, list[_Choice]]:
        choices: dict[str, list[_Choice]] = defaultdict(list)
        for one in run.records(Winner):
            if len(one.candidates) != 1:
                config = {name: str(value) for name, value in one.config.items()}
                choices[one.kernel].append(_Choice(one.key, config))
        return choices

    def explain(self, kernel: str, changes: Sequence[SettingChange]) -> bool:
        """True if autotuners of both runs chose exactly these values for one tuning key.

        The grid follows from them. Other keys, as Inductor's size hints, have other candidates.
        """
        named = [change for change in changes if change.name != "grid"]
        a, b = {one.name: one.a for one in named}, {one.name: one.b for one in named}
        return bool(named) and not self._keys(0, kernel, a).isdisjoint(self._keys(1, kernel, b))

    def _keys(self, run: int, kernel: str, values: Mapping[str, str]) -> set[tuple[str, ...]]:
        # the tuning keys for which these values were chosen
        chosen = self._choices[run].get(kernel, ())
        return {one.key for one in chosen if values.items() <= one.config.items()}
