"""The builds of a search from the outside to the inside, with their results cached on disk.

    RUNS/bisect/<name>-<digest>/<digest of the build>-<number>.json

The first digest covers the compiler, what is compiled, and everything else that was imported, so a cached
result is never used for a different program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tracing.analyze.bisect_case.evaluation import Evaluation, Variation
from tracing.analyze.bisect_case.symptom import Symptom, SymptomKind
from tracing.cli.options.outputs import chosen_output
from tracing.compiler.child import ChildResult
from tracing.compiler.identity import identity
from tracing.store import blob_name


class CachedBuilds(ABC):
    """Evaluates variations of a case or program; cached results are not computed a second time."""

    def __init__(self, runs: Path, name: str, key: Sequence[Any]) -> None:
        """key -- JSON values that tell this search from others of the same name and compiler."""
        self.folder = runs / "bisect" / f"{name}-{digest([*key, identity()])}"
        if not self.folder.exists():  # else it may have every answer
            chosen_output(self.folder, "--runs DIR")
        self.built = 0
        self.known = 0
        self._memory: dict[str, Evaluation] = {}

    def forget(self) -> None:
        """Clear the cache."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, variation: Variation, number: int) -> Evaluation:
        """The result of one build; `number` counts the evaluations of equal builds."""
        name = f"{digest(msgspec.to_builtins(variation))}-{number}"
        if name not in self._memory:
            self._memory[name] = self._kept(name) or self._new(variation, name)
        return self._memory[name]

    @abstractmethod
    def _built(self, variation: Variation) -> Evaluation:
        """Build one variation, in a process of its own."""

    def _kept(self, name: str) -> Evaluation | None:
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        kept = msgspec.json.decode(path.read_bytes(), type=Evaluation)
        if any(_content(file) != content for file, content in kept.files.items()):
            return None
        self.known += 1
        return kept

    def _new(self, variation: Variation, name: str) -> Evaluation:
        self.built += 1
        evaluation = self._built(variation)
        if evaluation.symptom.kind != "no answer" and evaluation.symptom.error != "timeout":
            self._keep(name, evaluation)
        return evaluation

    def _keep(self, name: str, evaluation: Evaluation) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        partial_path = self.folder / f"{name}.{os.getpid()}"
        partial_path.write_bytes(msgspec.json.encode(evaluation))
        partial_path.replace(self.folder / f"{name}.json")


def evaluated(ended: ChildResult) -> Evaluation:
    """What the process of a build answered, or how it died."""
    if ended.result is not None:
        return msgspec.convert(ended.result, type=Evaluation)
    how = "timeout" if ended.timed_out else ended.signal
    kind: SymptomKind = "dies" if how else "no answer"
    more = "; `--seconds` gives it more" if ended.timed_out else ""
    return Evaluation(Symptom(kind, f"{ended.failure}{more}", error=how), ended.seconds)


def digest(value: Any) -> str:
    """The name of a JSON value."""
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=6).hexdigest()


def nothing() -> None:
    """Is called in a child process in which a program makes the call."""


def _content(file: str) -> str:
    path = Path(file)
    return blob_name(path.read_bytes()) if path.is_file() else ""
