"""Builds of a case for `tracing bisect CASE`: each in a separate process, with its result cached on disk.

    RUNS/bisect/<case>-<digest>/<digest of the build>-<number>.json

The first digest covers the case, the compiler, and everything else that was imported, so a cached result is
never used for a different program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tracing.analyze.bisect_case.evaluation import Evaluation, Variation
from tracing.analyze.bisect_case.symptom import Symptom, SymptomKind
from tracing.compiler.child import ChildResult, in_child
from tracing.compiler.identity import identity

if TYPE_CHECKING:
    from tracing.program.experiment import Experiment


class CaseBuilds:
    """Evaluates variations of one case; cached results are not computed a second time."""

    def __init__(self, experiment: Experiment, words: list[str], runs: Path, seconds: float) -> None:
        """Evaluate builds of a case.

        words   -- arguments by which a child process loads the experiment: case, target, seed
        seconds -- time limit of one build
        """
        from tracing.replay.partial_case import PartialCase

        self._case, self._words, self._seconds = PartialCase(experiment), words, seconds
        self._forks = experiment.device.virtual  # a fork cannot use a GPU that this process has used
        self._prepared = False
        key = [str(experiment.case.path), experiment.case.name, *words, identity()]
        self.folder = runs / "bisect" / f"{experiment.case.name}-{_digest(key)}"
        self.built = 0
        self.known = 0
        self._memory: dict[str, Evaluation] = {}

    def forget(self) -> None:
        """Clear the cache."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, variation: Variation, number: int) -> Evaluation:
        """The result of one build; `number` counts the evaluations of equal builds."""
        name = f"{_digest(msgspec.to_builtins(variation))}-{number}"
        if name not in self._memory:
            self._memory[name] = self._kept(name) or self._built(variation, name)
        return self._memory[name]

    def _kept(self, name: str) -> Evaluation | None:
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        self.known += 1
        return msgspec.json.decode(path.read_bytes(), type=Evaluation)

    def _built(self, variation: Variation, name: str) -> Evaluation:
        self.built += 1
        evaluation = _evaluation(self._ended(variation))
        if evaluation.symptom.kind in ("right", "differs", "eager is off"):
            self._prepare()
        if evaluation.symptom.kind != "no answer" and evaluation.symptom.error != "timeout":
            self._keep(name, evaluation)
        return evaluation

    def _ended(self, variation: Variation) -> ChildResult:
        one = variation
        if self._forks:
            call = partial(self._case.evaluate, one.stage, one.first, one.without, one.only)
            return in_child(call, self._seconds)
        spec = msgspec.json.encode([*self._words, one.stage, one.first, one.without, one.only]).decode()
        program = [sys.executable, "-m", "tracing.cli.narrow.bisect.case_child", spec]
        return in_child(_nothing, self._seconds, program=program)

    def _prepare(self) -> None:
        # after a child has shown that eager ends; only forks can use it
        if self._forks and not self._prepared:
            self._prepared = True
            self._case.prepare()

    def _keep(self, name: str, evaluation: Evaluation) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        partial_path = self.folder / f"{name}.{os.getpid()}"
        partial_path.write_bytes(msgspec.json.encode(evaluation))
        partial_path.replace(self.folder / f"{name}.json")


def _evaluation(ended: ChildResult) -> Evaluation:
    if ended.result is not None:
        return msgspec.convert(ended.result, type=Evaluation)
    how = "timeout" if ended.timed_out else ended.signal
    kind: SymptomKind = "dies" if how else "no answer"
    more = "; `--seconds` gives it more" if ended.timed_out else ""
    return Evaluation(Symptom(kind, f"{ended.failure}{more}", error=how), ended.seconds)


def _digest(value: Any) -> str:
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=6).hexdigest()


def _nothing() -> None:
    # the program makes the call
    return None
