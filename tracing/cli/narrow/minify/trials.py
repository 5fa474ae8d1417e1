"""Trials of `tracing minify`: each runs in a separate process, and its result is cached in the output folder.

    FOLDER/trials-<digest>.ndjson       a line for each: the edit and its trial

The digest covers the graphs, their inputs, the predicate and the compiler, so a cached result is never used
for a different case. An interrupted search continues from the cache.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from tracing.analyze.minify.graph_edit import GraphEdit
from tracing.analyze.minify.trial import ScriptForm, Trial
from tracing.cli.narrow.minify.question import Question
from tracing.compiler.child import ChildResult, in_child
from tracing.environment import module_command
from tracing.errors import Problem

if TYPE_CHECKING:
    from tracing.minify.graph_trials import GraphTrials


class _Answer(msgspec.Struct, frozen=True):
    edit: GraphEdit
    trial: Trial


class Job(msgspec.Struct, frozen=True):
    """The task of a child: execute a candidate, or write its script."""

    edit: GraphEdit
    trial: Trial | None = None  # the failure that a script reproduces
    script: str = ""
    form: ScriptForm = ScriptForm()


class Trials:
    """Executes candidates of one case; cached ones are not executed a second time."""

    def __init__(self, graphs: GraphTrials, question: Question, folder: Path, seconds: float) -> None:
        """Execute candidates.

        folder  -- of the output
        seconds -- time limit of one execution
        """
        from tracing.compiler.identity import identity

        self.graphs, self._question, self._seconds = graphs, question, seconds
        self._forks = graphs.virtual  # a fork cannot use a GPU that this process has used
        form = ",".join(one.name for one in fields(Trial))  # other versions of this project have another one
        key = "\0".join([graphs.identity(), graphs.predicate.key, identity(), question.case, form])
        digest = hashlib.blake2b(key.encode(), digest_size=6).hexdigest()
        self.case = question.case
        self.file = folder / f"trials-{digest}.ndjson"
        self.executed = 0
        self._known = dict(self._kept())
        self.known = len(self._known)

    def forget(self) -> None:
        """Clear the cache."""
        self.file.unlink(missing_ok=True)
        self._known, self.known = {}, 0

    def __call__(self, edit: GraphEdit) -> Trial:
        """How the execution of a candidate ended."""
        if edit not in self._known:
            started = time.perf_counter()
            ended = self._in_child(Job(edit))
            self.executed += 1
            trial = _trial(ended)
            if trial.kind == "dies":  # the child ended before it reported its graph
                graph = {**self.graphs.described(edit), "seconds": time.perf_counter() - started}
                trial = msgspec.convert({**msgspec.to_builtins(trial), **graph}, type=Trial)
            self._known[edit] = trial
            if not (ended.timed_out or ended.transient):  # the next execution may end differently
                self._keep(_Answer(edit, trial))
        return self._known[edit]

    def write(self, edit: GraphEdit, trial: Trial, script: Path, form: ScriptForm) -> list[str]:
        """Write the script of a failing candidate; returns the names that it lacks. Raises Problem."""
        ended = self._in_child(Job(edit, trial, str(script), form))
        if ended.failure:
            raise Problem(f"the script cannot be written: {ended.failure}")
        return list(ended.result)

    def _in_child(self, job: Job) -> ChildResult:
        # a child that is killed leaves its caches
        with TemporaryDirectory(prefix="tracing-", ignore_cleanup_errors=True) as folder:
            if self._forks:
                return in_child(lambda: done(self.graphs, job, folder), self._seconds)
            spec = msgspec.json.encode([self._question, job, folder]).decode()
            program = module_command("tracing.cli.narrow.minify.trial_child", spec)
            return in_child(lambda: None, self._seconds, program=program)

    def _kept(self) -> list[tuple[GraphEdit, Trial]]:
        if not self.file.exists():
            return []
        lines = self.file.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]  # an interruption may have cut the last line
        answers: list[tuple[GraphEdit, Trial]] = []
        for line in whole:
            with suppress(msgspec.DecodeError):
                one = msgspec.json.decode(line, type=_Answer)
                answers.append((one.edit, one.trial))
        return answers

    def _keep(self, one: _Answer) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self.file.exists() and not self.file.read_bytes().endswith(b"\n"):
            with self.file.open("ab") as file:
                file.write(b"\n")
        with self.file.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")


def done(graphs: GraphTrials, job: Job, folder: str) -> Any:
    """Do the task of a child; returns the fields of a Trial, or the names that a script lacks.

    folder -- for temporary files
    """
    tempfile.tempdir = folder
    if job.trial is None:
        return graphs.execute(job.edit)
    return graphs.write(job.edit, job.trial, Path(job.script), job.form)


def _trial(ended: ChildResult) -> Trial:
    if ended.result is not None:
        return msgspec.convert(ended.result, type=Trial)
    if ended.timed_out:
        return Trial("dies", f"{ended.failure}; `--seconds` gives it more", error="timeout")
    if ended.signal and not ended.transient:
        from tracing.compiler.early_end import early_end_of

        message = early_end_of(ended, "").message
        text = message if message.startswith(ended.signal) else f"{ended.signal}: {message}"
        return Trial("dies", text, error=ended.signal)
    return Trial("no answer", ended.failure)
