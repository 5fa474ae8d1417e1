"""Record a launch once more, by `tracing run`, because the contents of its inputs were not kept."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shlex import join

from tracing import store
from tracing.analyze.replay.rerecorded_launch import LaunchAgain, launch_again
from tracing.analyze.runs.rerecording import command, recording, variables
from tracing.analyze.runs.winners import choices
from tracing.cli.app import err
from tracing.environment import with_variables
from tracing.errors import Problem
from tracing.store.recorded_launch import RecordedLaunch
from tracing.store.winners import write_winners


def record_again(recorded: RecordedLaunch, runs: Path) -> LaunchAgain:
    """Rerun the case of a launch, with the same winners of autotuning, and keep the launch's inputs.

    runs -- the folder in which the new run is put

    Raises Problem, with the command that records the whole run, if the launch cannot be recorded anew.
    """
    run = recorded.run
    typed = f"record the run with them: `{join(recording(run, '--keep-inputs'))}`"
    why = f"the inputs of launch {recorded.launch.index} were not kept"
    if run.info.world_size > 1 or len(run.processes()) > 1:
        raise Problem(f"{why}, and the run is of several processes", typed)
    with tempfile.TemporaryDirectory(prefix="tracing-") as folder:
        try:
            return launch_again(recorded, _Commands(run, runs, Path(folder)))
        except subprocess.CalledProcessError as error:
            last = next(iter(error.stderr.strip().splitlines()[-1:]), f"exit status {error.returncode}")
            raise Problem(f"{why}, and recording it anew failed: {last.strip()}", typed) from None
        except Problem as problem:
            raise Problem(problem.problem, problem.remedy or typed) from None


class _Commands:
    # the recorder that launch_again wants; `folder` is for what nobody needs afterwards

    def __init__(self, run: store.Run, runs: Path, folder: Path) -> None:
        self._run, self._runs, self._folder = run, runs, folder
        self._winners: Sequence[str] = ()  # an autotuner that measures anew may take another configuration
        if chosen := choices(run):
            path = folder / "winners.json"
            write_winners(path, run.info.environment, [one.first for one in chosen])
            self._winners = ("--winners", str(path))

    def inputs(self, index: int) -> store.Run:
        options = ("--launches", f"{index}:{index + 1}", "--keep-inputs")
        return self._recorded(self._runs, options, f"launch {index} and its inputs")

    def calls(self, kernel: str) -> store.Run:
        options = ("--kernel", kernel)
        return self._recorded(self._folder, options, f"the launches of {kernel}")

    def _recorded(self, runs: Path, options: Sequence[str], what: str) -> store.Run:
        words = command(self._run.info, *options, *self._winners, "--no-passes", "--runs", str(runs))
        own = with_variables(variables(self._run))
        with err.status(f"recording {what}"):
            done = subprocess.run(
                [sys.executable, "-m", *words], capture_output=True, text=True, env=own, check=False
            )
        lines = done.stdout.splitlines()
        if done.returncode not in (0, 1) or not lines:  # 1: the results differ from eager's
            raise subprocess.CalledProcessError(done.returncode, words, stderr=done.stderr)
        return store.Run(Path(lines[-1]))
