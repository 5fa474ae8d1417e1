"""Run gdb in a terminal: attached to a program that stops for it, or around a replayed pass."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tracing.attach import compiling, gdb_with_amx, permission
from tracing.attach.compiling import Compiling, WantedStop
from tracing.environment import compiled_parts, installed_tools
from tracing.errors import Problem

COMMANDS = Path(__file__).with_name("debuggers") / "gdb_load.py"
_POLL = 0.05
_GRACE = 5.0  # seconds from SIGTERM to SIGKILL
_ATTEMPTS = 3  # to attach gdb to one stop


@dataclass(frozen=True, slots=True)
class Gdb:
    """The command line of gdb."""

    path: str
    sources: tuple[Path, ...] = ()  # checkouts of Triton and LLVM
    script: tuple[str, ...] | None = None  # commands at the stop, after which gdb ends; None: a person types

    def attach(self, pid: int, wanted: WantedStop) -> list[str]:
        """The command that attaches, and continues to the pass."""
        few = ["-iex", "compiler-symbols"]
        return [*self._start(wanted), *few, *self._commands_after_start(f"attach-to {pid}", "continue")]

    def launch(self, command: Sequence[str], variables: Mapping[str, str], wanted: WantedStop) -> list[str]:
        """The command that starts a program, and continues to the pass.

        variables -- only of the program: gdb has a Python too, which would read PYTHONPATH
        """
        lines = [f"set environment {name} {value}" for name, value in variables.items()]
        own = [word for line in lines for word in ("-iex", line)]
        return [*self._start(wanted), *own, *self._commands_after_start("run"), "--args", *command]

    def _start(self, wanted: WantedStop) -> list[str]:
        # all settings come before gdb reads symbols, which is when it looks for the index
        maps = [f"triton-sources {' '.join(map(str, self.sources))}"] if self.sources else []
        trusted = f"add-auto-load-safe-path {sys.base_prefix}"  # Python's own gdb commands, where it has them
        lines = [trusted, f"source {COMMANDS}", *maps, f"break-pass {wanted.name} {wanted.kernel}"]
        quiet = ["-q"] if self.script is None else ["-q", "-nx", "-batch", "-iex", "set $_batch = 1"]
        return [self.path, *quiet, *(word for line in lines for word in ("-iex", line))]

    def _commands_after_start(self, *first: str) -> list[str]:
        return [word for line in (*first, *(self.script or ())) for word in ("-ex", line)]


def gdb_of_this_machine(script: Sequence[str] | None) -> Gdb:
    """The gdb and the sources of this machine; raises Problem if there is no gdb with Python.

    script -- commands at the stop; None: a person types
    """
    path = gdb_with_amx.able_to_call(installed_tools.gdb(), compiled_parts.cache())
    return Gdb(path, installed_tools.sources(), tuple(script) if script is not None else None)


def debugged(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    wanted: WantedStop,
    gdb: Gdb,
    progress: Callable[[str], None],
) -> None:
    """Start a program and attach gdb to each of its processes that stops, until it ends.

    environment, folder -- of `stops.stopping`

    Raises Problem if it ended and no pass was wanted, or if a process that waits may not be traced or is left
    by every gdb. An interruption or a Problem ends the program and the processes of its session.
    """
    # a separate session, so that Ctrl-C in gdb does not reach the program
    program = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    attempts: Counter[tuple[int, int]] = Counter()
    try:
        while program.poll() is None:
            for now in _waiting(folder):
                _require_attachable(now, attempts)
                progress(f"process {now.pid} stopped: {now.kernel}, {now.stage}; gdb reads its symbols")
                foreground(gdb.attach(now.pid, wanted))
            time.sleep(_POLL)
    finally:
        _end(program)
    problem = compiling.never_came(wanted, compiling.seen(folder))
    if problem is not None:
        raise problem


def _end(program: subprocess.Popen[bytes]) -> None:
    # with the processes that it started: of its session, as compile workers are
    if program.poll() is not None:
        return
    os.killpg(program.pid, signal.SIGTERM)
    try:
        with suppress(subprocess.TimeoutExpired):  # SIGKILL follows in any case
            program.wait(_GRACE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def _require_attachable(now: Compiling, attempts: Counter[tuple[int, int]]) -> None:
    # a gdb that exits immediately must not be started for ever
    try:
        permission.require(now.pid)
    except Problem:
        if not _gone(now.pid):
            raise
    attempts[now.pid, now.number] += 1
    if attempts[now.pid, now.number] > _ATTEMPTS:
        raise Problem(
            f"gdb left process {now.pid} {_ATTEMPTS} times before the pass; its messages are above",
            "`make doctor` checks gdb; `tracing attach` lists the processes that can be attached to",
        )


def foreground(command: Sequence[str]) -> int:
    """Run a program that owns the terminal and its Ctrl-C; return its exit status."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(command, restore_signals=True, preexec_fn=_interruptible).wait()
    except OSError as error:
        raise Problem(f"{command[0]} cannot be started: {error.strerror}", "`make doctor`") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _waiting(folder: Path) -> list[Compiling]:
    return [now for now in compiling.read(folder) if now.waiting and not _gone(now.pid)]


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()
