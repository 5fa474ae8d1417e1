"""CachedBuilds of a case for `tracing bisect CASE`: each compiled and judged in a separate process."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracing.analyze.bisect_case.evaluation import Evaluation, Variation
from tracing.cli.narrow.bisect.builds import CachedBuilds, evaluated, nothing
from tracing.compiler.child import ChildResult, in_child
from tracing.environment import module_command

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment


class CaseBuilds(CachedBuilds):
    """Evaluates variations of one case."""

    def __init__(self, experiment: Experiment, words: list[str], runs: Path, seconds: float) -> None:
        """Evaluate builds of a case.

        words   -- arguments by which a child process loads the experiment: case, target, seed
        seconds -- time limit of one build
        """
        from tracing.replay.partial_case import PartialCase

        case = experiment.case
        super().__init__(runs, case.name, [str(case.path), case.name, *words])
        self._case, self._words, self._seconds = PartialCase(experiment), words, seconds
        self._forks = experiment.device.virtual  # a fork cannot use a GPU that this process has used
        self._prepared = False

    def _built(self, variation: Variation) -> Evaluation:
        evaluation = evaluated(self._ended(variation))
        if evaluation.symptom.kind in ("right", "differs", "eager is off"):
            self._prepare()
        return evaluation

    def _ended(self, variation: Variation) -> ChildResult:
        one = variation
        if self._forks:
            call = partial(self._case.evaluate, one.stage, one.first, one.without, one.only)
            return in_child(call, self._seconds)
        spec = msgspec.json.encode([*self._words, one.stage, one.first, one.without, one.only]).decode()
        program = module_command("tracing.cli.narrow.bisect.case_child", spec)
        return in_child(nothing, self._seconds, program=program)

    def _prepare(self) -> None:
        # after a child has shown that eager ends; only forks can use it
        if self._forks and not self._prepared:
            self._prepared = True
            self._case.prepare()
