"""Records the cases in data/planted, each once, in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.truths import Difference, Recipe

from tracing import store
from tracing.model import SCHEMA, Case, Outcome, RunInfo
from tracing.program.case import load_case
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.selection import of_rank, selection_of
from tracing.record.run import record


class Recordings:
    """Runs by case and recipe, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: dict[tuple[Path, Recipe], Path] = {}

    def of(self, difference: Difference, recipe: Recipe) -> Path:
        """The run of a case by a recipe; records it unless that was done before."""
        key = difference.path, recipe
        if key not in self._runs:
            with case_of(difference, recipe, self.folder) as case:
                self._runs[key] = recorded(case, recipe.flags, self.folder)
        return self._runs[key]


@contextmanager
def case_of(difference: Difference, recipe: Recipe, folder: Path) -> Iterator[Case]:
    """The case of a recipe. An edited case is a copy whose file is rewritten for each recipe."""
    written, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # an edit within a second would not invalidate the bytecode
    try:
        path = edited(difference, recipe, folder) if difference.edited else difference.path
        yield load_case(f"{path}:{recipe.options}" if recipe.options else str(path))
    finally:
        sys.dont_write_bytecode = written


def edited(difference: Difference, recipe: Recipe, folder: Path) -> Path:
    """A copy of the case's file with a recipe's edit; the docstring, which quotes edits, stays."""
    text = difference.path.read_text()
    end = text.index('"""', 3)
    body = text[end:]
    if recipe.edit:
        assert recipe.edit[0] in body, f"{difference.id}: there is no {recipe.edit[0]} to edit"
        body = body.replace(*recipe.edit)
    copy = folder / "edited" / difference.path.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(text[:end] + body)
    return copy


def recorded(case: Case, flags: tuple[str, ...], folder: Path) -> Path:
    """A run of a case, recorded as `tracing run --no-passes` with these flags does."""
    given = dict(zip(flags[::2], flags[1::2], strict=True))
    kernel, launches = given.pop("--kernel", None), given.pop("--launches", ":")
    assert not given, f"no flags of a recipe: {given}"
    experiment = Experiment(case, Device("sm_90"), seed=0)
    argv = ("tracing", "run", str(case.path), *flags)
    environment = experiment.device.environment()
    chosen = selection_of([kernel] if kernel else None, launches, (), None)
    info = RunInfo(SCHEMA, case.name, str(case.path), argv, 0, store.now(), environment, "all", 1, chosen)
    writer = store.create(folder, info)
    recorder = LaunchRecorder(writer, selection=of_rank(chosen, 0))
    record(experiment, recorder, lambda stage: None, passes=None)
    writer.close()
    return writer.path


def failed(run: Path) -> bool:
    """Whether the case of a run failed."""
    return any(outcome.status == "failed" for outcome in store.Run(run).records(Outcome))
