"""However a session ends at a C++ stop, no process is left: of the program, of gdb, of debugpy."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from debugger.conftest import PROGRAMS, gdb_for
from debugger.dap import Adapter, Message
from debugger.editor import Editor, chosen, generated
from debugger.mi import Gdb
from debugger.native import WAIT, spawned
from debugger.test_f5 import OPEN_FILE

LIMIT = 60  # seconds, of a busy machine; an idle one takes less than 3


def state(pid: int) -> str:
    """Of a process, as in /proc; "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(done: Callable[[], bool]) -> None:
    started = time.monotonic()
    while not done():
        assert time.monotonic() - started < LIMIT, "it never ended"
        time.sleep(0.05)


@dataclass(frozen=True)
class Held:
    """A program at a C++ stop, in the process that gdb holds, and what VSCode has started for it."""

    editor: Editor
    gdb: subprocess.Popen[bytes] | subprocess.Popen[str]
    pids: tuple[int, ...]  # of the stopped process, and of the program if that is its parent


@contextmanager
def by_mi(native: Message, _early: Adapter | None) -> Iterator[subprocess.Popen[str]]:
    gdb = Gdb(native)
    try:
        gdb.run(f"-target-attach {native['processId']}")
        gdb.run("-exec-continue")
        gdb.stopped()
        yield gdb.process
    finally:
        gdb.close()


@contextmanager
def by_dap(native: Message, early: Adapter | None) -> Iterator[subprocess.Popen[bytes]]:
    adapter = spawned(native, early)
    try:
        adapter.start(native, {})
        stop = adapter.event("stopped", WAIT)
        adapter.request("continue", threadId=stop.get("threadId", 1))  # as our extension does
        adapter.event("stopped", WAIT)
        assert adapter.process is not None
        yield adapter.process
    finally:
        adapter.close()


@pytest.fixture
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    """A program, or a worker of it, that gdb has stopped in a pass, through one of gdb's two adapters."""
    kind, program = request.param
    launch = generated(tmp_path, "--debugger", kind, gdb=gdb_for(kind))
    editor = Editor(chosen(launch, OPEN_FILE, PROGRAMS / program, kernel="add"), {})
    try:
        native = editor.natives.get(timeout=WAIT)
        pid = native.get("processId") or native["pid"]
        with (by_mi if kind == "cppdbg" else by_dap)(native, editor.early) as gdb:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            yield Held(editor, gdb, (pid, parent) if program == "forked.py" else (pid,))
    finally:
        editor.close()


def stop(held: Held) -> None:
    held.editor.sessions[0].send("disconnect", terminateDebuggee=True)  # the program cannot answer


def restart(held: Held) -> None:
    held.editor.sessions[0].send("disconnect", terminateDebuggee=True, restart=True)


def close_the_window(held: Held) -> None:
    for adapter in (held.gdb, held.editor.sessions[0].process):
        assert adapter is not None and adapter.stdin is not None
        adapter.stdin.close()


def crash_of_debugpys_adapter(held: Held) -> None:
    adapter = held.editor.sessions[0].process
    assert adapter is not None
    adapter.kill()


def crash_of_gdb(held: Held) -> None:
    held.gdb.kill()  # the program goes on, and ends


ADAPTERS = ("cppdbg", "triton-gdb")
ENDS = (restart, close_the_window, crash_of_debugpys_adapter, crash_of_gdb)
LONG = [
    pytest.param((kind, program), end, marks=pytest.mark.soak)
    for kind in ADAPTERS
    for program in ("forked.py", "add.py")
    for end in ENDS
]


@pytest.mark.parametrize(("held", "end"), [((ADAPTERS[0], "forked.py"), stop), *LONG], indirect=["held"])
def test_no_process_is_left(held: Held, end: Callable[[Held], None]) -> None:
    end(held)

    wait_until(lambda: held.gdb.poll() is not None and all(state(pid) in ("", "Z") for pid in held.pids))


@pytest.mark.parametrize("held", [(kind, "add.py") for kind in ADAPTERS], indirect=True)
def test_gdb_ends_when_the_process_that_it_holds_is_killed(held: Held) -> None:
    os.kill(held.pids[0], signal.SIGKILL)

    wait_until(lambda: held.gdb.poll() is not None)


def test_only_the_main_thread_of_gdb_takes_the_signals_for_which_it_waits(tmp_path: Path) -> None:
    (tmp_path / "empty.py").touch()
    entries = generated(tmp_path, "--debugger", "cppdbg", gdb=gdb_for("cppdbg"))
    gdb = Gdb(chosen(entries, "LLVM: triton-opt under gdb", tmp_path / "empty.py", pipeline="cse"))
    try:
        blocked = {
            int(task.name): int(line.split()[1], 16)
            for task in Path(f"/proc/{gdb.process.pid}/task").iterdir()
            for line in (task / "status").read_text().splitlines()
            if line.startswith("SigBlk:")
        }
    finally:
        gdb.close()

    assert len(blocked) > 1  # one of them looks whether the process has ended
    takes = {task for task, mask in blocked.items() if not mask & 1 << signal.SIGCHLD - 1}
    assert takes == {gdb.process.pid}
