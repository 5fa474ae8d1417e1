"""Reads runs in this process: by the functions of the readers, and by the commands, within bounds."""

from __future__ import annotations

import contextlib
import io
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

from tracing import model, store
from tracing.analyze.passes.locations import located
from tracing.analyze.passes.operations import operations
from tracing.analyze.passes.renaming import renamed
from tracing.cli.answers.terminal import SafeStream
from tracing.cli.app import app
from tracing.model import CompiledGraph, Record, file_of
from tracing.report.run import run_text
from tracing.report.run_json import run_json
from tracing.store.graph_file import read_schedule


def _kinds() -> Iterator[type[Record]]:
    for one in vars(model).values():
        with contextlib.suppress(KeyError, TypeError):
            file_of(one)
            yield one


KINDS = tuple(_kinds())  # of record that a run has files of
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SECONDS = 300  # after which a command hangs, on a machine that does much else
MEMORY = 4 << 30  # bytes of address space that it may take in addition


@dataclass(frozen=True)
class Answer:
    """What one command left."""

    words: Sequence[str]
    status: int
    out: str
    err: str

    def faults(self) -> Iterator[str]:
        """What no run may cause: a traceback, a status of its own, control characters, silence."""
        if self.status not in (0, 1, 2):
            yield f"exit status {self.status}"
        if "Traceback" in self.err:
            yield self.err[self.err.index("Traceback") :]
        if CONTROL.search(self.out + self.err):
            yield "control characters are printed"
        if self.status == 2 and not self.out + self.err:
            yield "no error is printed"


@cache
def _command() -> Any:
    return get_command(app)


class Hangs(BaseException):
    """A command did not end in time."""


def ask(*words: str) -> Answer:
    """Execute a command in this process, as `main` does, within bounds of time and memory."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr

    def hang(*_: object) -> None:
        raise Hangs(" ".join(words))

    signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    try:
        sys.stdout, sys.stderr = SafeStream(out), SafeStream(err)  # type: ignore[assignment,arg-type]
        status = _command().main(list(words), standalone_mode=False)
    finally:
        signal.alarm(0)
        sys.stdout, sys.stderr = before
    return Answer(words, int(status or 0), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """While entered, this process cannot take much more memory than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def questions(run: Path, other: Path, launch: int, kernel: str) -> list[list[str]]:
    """The commands that read a run and compile nothing."""
    at, to = str(run), str(other)
    return [
        ["list", "--runs", str(run.parent)],
        ["show", at],
        ["show", at, "--json"],
        ["show", at, "--launch", str(launch)],
        ["compare", at, to],
        ["compare", to, at, "--json"],
        ["passes", at],
        ["passes", at, "--kernel", kernel],
        ["passes", at, "--kernel", kernel, "--changed"],
        ["passes", at, "--kernel", kernel, "--pass", "0"],
        ["passes", at, to],
        ["winners", at],
        ["ranks", at],
        ["replay", at, "--launch", str(launch)],
        ["repro", at, "--launch", str(launch), "--output", str(run.parent / "repro")],
        ["swap", at, to, "--anyway"],
        ["report", at, to, "--no-sass", "-o", str(run.parent / "report.html")],
    ]


def read_all(path: Path) -> None:
    """Read whatever a run holds, as analyses and reports do; raises Problem where it is damaged."""
    run = store.Run(path)
    for kind in KINDS:
        for record in run.records(kind):
            record.stored()
    for process in run.processes():
        list(run.operators(process))
        run.storages(process)
    for one in run.passes():
        operations(run.text(one.before))
        if one.after is not None:
            renamed(run.text(one.before), run.text(one.after))
    for _, artefact in run.artefacts():
        text = run.text(artefact.blob)
        if artefact.stage in ("ttir", "ttgir", "llir", "ptx", "amdgcn"):
            located(artefact.stage, text)
    for graph in run.records(CompiledGraph):
        read_schedule(run, graph)
    list(run_text(run))
    run_json(run, [(0, one) for one in run.launches()])
