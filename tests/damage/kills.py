"""Kills commands at random moments, and checks what they leave: runs, processes.

A command runs in a fork of a process that has imported torch: its start takes 0.1 s and not ten.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from damage.run_readers import KINDS

from tracing import store
from tracing.model import Derivation, LaunchLine, PassRecord
from tracing.report.run import run_text

SETTLED = 60.0  # seconds within which all processes of a killed command must be gone
TEMPLATE = """
import json, os, signal, sys
import torch, torch._dynamo, torch._inductor.compile_fx, triton
import tracing.cli, tracing.record.run, tracing.program.experiment, tracing.record.passes.derivation

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    words, output = json.loads(line)
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, name in ((0, os.devnull), (1, output), (2, output + ".err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), target)
    sys.argv = ["tracing", *words]
    try:
        tracing.cli.main()
        status = 0
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else 1
    with open(output + ".status", "w") as file:
        file.write(str(status))
    sys.stdout.flush()
    os._exit(status)
"""


class Commands:
    """Starts commands as forks of one process."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._count = 0

    def start(self, *words: str) -> Command:
        self._count += 1
        output = self._folder / f"{self._count}.out"
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([words, str(output)]) + "\n")
        self._process.stdin.flush()
        return Command(int(self._process.stdout.readline()), output)

    def run(self, *words: str) -> Command:
        """Start a command and wait for its end."""
        command = self.start(*words)
        command.wait()
        return command


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and the session of all that it starts."""

    pid: int
    output: Path

    @property
    def status(self) -> int | None:
        """The exit status; None if it was killed."""
        path = self.output.with_name(f"{self.output.name}.status")
        return int(path.read_text()) if path.exists() else None

    def messages(self) -> str:
        return self.output.with_name(f"{self.output.name}.err").read_text()

    def wait(self, seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while _lives(self.pid):
            assert time.monotonic() < deadline, f"{self.pid} did not end: {self.messages()}"
            time.sleep(0.02)

    def processes(self) -> list[int]:
        """All processes of its session that live, and what was started by one of them."""
        return [pid for pid in _pids() if _session(pid) == self.pid and _lives(pid)]

    def kill(self, chance: random.Random) -> str:
        """Kill the command, or all of it, or one process that it started; says which."""
        others = [pid for pid in self.processes() if pid != self.pid]
        how = chance.choice(["command", "all", "other"] if others else ["command"])
        pids = {"command": [self.pid], "all": [self.pid, *others], "other": [chance.choice(others or [0])]}
        for pid in pids[how]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return how

    def left(self) -> list[int]:
        """The processes that outlive the command by a minute."""
        deadline = time.monotonic() + SETTLED
        while (processes := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        return processes


@contextmanager
def commands(folder: Path) -> Iterator[Commands]:
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", TEMPLATE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield Commands(process, folder)
    finally:
        process.kill()
        process.wait()


# ---- what a kill leaves ----


def files(folder: Path) -> dict[Path, bytes]:
    """What is on disk of the runs in a folder."""
    contents = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.name.endswith((".ndjson", ".zst", "run.json")):
                contents[path] = path.read_bytes()
    return contents


def lost(before: dict[Path, bytes]) -> list[str]:
    """The files that do not begin with what was in them before."""
    return [path.name for path, content in before.items() if not _starts_with(path, content)]


def _starts_with(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes().startswith(content)
    except FileNotFoundError:
        return False


def opened(runs: Path) -> list[store.Run]:
    """Every run in a folder, after all of its records were read and it was shown."""
    readable = [store.Run(path) for path in store.recorded(runs)]
    for run in readable:
        counts = {kind.__name__: sum(1 for _ in run.records(kind)) for kind in KINDS}
        assert sum(1 for _ in run.launches()) == counts[LaunchLine.__name__], counts
        list(run_text(run))
    return readable


def passes(run: store.Run) -> list[tuple[str, str, str, str | None]]:
    """The passes of a run with their IR, in an order that does not depend on processes."""
    assert [one.differs for one in run.records(Derivation) if one.differs] == []
    return sorted(_facts(one) for one in run.passes())


def _facts(one: PassRecord) -> tuple[str, str, str, str | None]:
    return f"{one.compilation.kernel_name} {one.index:03}", one.name, one.before, one.after


def without_ir(run: Path, copy: Path) -> None:
    """Copy a run as its recording left it when it was killed before it derived the IR between passes."""
    shutil.copytree(run, copy)
    (recorder,) = {store.Run(run).processes()[0].rsplit("-", 1)[1]}
    for path in [*copy.glob("*.ndjson*"), *(copy / "blobs").glob("*-*-*-*.zst")]:
        process = path.name.split(".")[0] if path.parent == copy else path.stem.rsplit("-", 1)[0]
        if process.rsplit("-", 1)[1] != recorder:
            path.unlink()


# ---- processes ----


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _session(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[3]) if stat else 0


def _lives(pid: int) -> bool:
    stat = _stat(pid)
    return bool(stat) and stat[0] not in "ZX"
