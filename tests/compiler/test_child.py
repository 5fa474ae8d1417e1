"""Calls in a child process, by several threads at once and by a parent that is killed."""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tracing.compiler import child
from tracing.compiler.child import in_child, opened_gpu, send_message


def _most_forks_at_once() -> int:
    active = most = 0

    def before() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        time.sleep(0.05)

    def forked() -> None:
        nonlocal active
        active -= 1

    os.register_at_fork(before=before, after_in_parent=forked)
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda number: in_child(lambda: number, 20), range(4)))
    assert [one.result for one in ended] == [0, 1, 2, 3]
    return most


def test_threads_fork_one_after_the_other_because_packages_hold_locks() -> None:
    ended = in_child(_most_forks_at_once, 60)  # a child: functions registered at fork cannot be removed

    assert ended.result == 1, ended


def test_a_child_sends_messages_while_it_runs() -> None:
    received: list[str] = []

    ended = in_child(
        lambda: [send_message("one"), send_message("two " * 50_000)] and 3, 20, received=received.append
    )

    assert (received, ended.result) == (["one", "two " * 50_000], 3)


def test_a_child_without_a_limit_of_time_ends_by_itself() -> None:
    assert in_child(lambda: time.sleep(0.1), None).failure == ""


def test_an_interrupted_child_has_time_to_save_its_state(tmp_path: Path) -> None:
    def work() -> None:
        try:
            send_message("started")
            time.sleep(30)
        except KeyboardInterrupt:
            (tmp_path / "known").write_text("all")

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            in_child(work, None, received=interrupt, patience=10)
    finally:
        signal.signal(signal.SIGINT, before)

    assert (tmp_path / "known").read_text() == "all"


def test_a_program_can_answer_instead_of_a_fork() -> None:
    code = (
        "import sys; from tracing.compiler.child import respond, send_message; "
        "respond(lambda: [send_message('here'), sys.argv[1]], int(sys.argv[2]))"
    )
    received: list[str] = []

    ended = in_child(
        lambda: 1 / 0, 60, received=received.append, program=[sys.executable, "-c", code, "given"]
    )

    assert (ended.result, received) == ([None, "given"], ["here"])


def test_a_process_that_has_opened_a_gpu_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_GPUS", (str(tmp_path / "nvidia"),))

    assert not opened_gpu()
    with (tmp_path / "nvidia0").open("w"):
        assert opened_gpu()


@pytest.mark.parametrize(
    ("call", "transient"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), True),  # as the kernel does when memory runs out
        (lambda: time.sleep(60), True),
        (lambda: (Path("/nowhere") / "file").write_text(""), True),
        (lambda: os.abort(), False),
        (lambda: 1 / 0, False),
        (lambda: 1, False),
    ],
)
def test_an_ending_that_says_nothing_about_the_call_is_an_accident(
    call: Callable[[], object], transient: bool
) -> None:
    ended = in_child(call, 2)

    assert ended.transient == transient, ended


class _Slow:
    """Holds tempfile's own lock long enough for a fork to happen meanwhile."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock

    def acquire(self) -> None:
        self.lock.acquire()
        time.sleep(0.02)

    def release(self) -> None:
        self.lock.release()


def _first_files_of_a_process() -> list[str]:
    tempfile.tempdir, tempfile._name_sequence = None, None  # type: ignore[attr-defined]
    tempfile._once_lock = _Slow(tempfile._once_lock)  # type: ignore[attr-defined]

    def named() -> str:
        with tempfile.NamedTemporaryFile() as file:
            return str(file.name)

    with ThreadPoolExecutor(8) as pool:
        return [one.failure for one in pool.map(lambda _: in_child(named, 5), range(8))]


def test_no_child_waits_for_a_lock_that_a_thread_held_when_it_was_forked() -> None:
    ended = in_child(_first_files_of_a_process, 60)  # a child, whose tempfile has not made a file yet

    assert ended.result == [""] * 8, ended


SLOW = "import time\ntime.sleep(0.3)\nVALUE = 3\n"  # a module


def _imported_meanwhile(name: str) -> tuple[int, str]:
    """A child imports the module that another thread imports when the child is forked."""

    def value() -> int:
        return int(importlib.import_module(name).VALUE)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(value)
        while name not in sys.modules:
            time.sleep(0.001)
        ended = in_child(value, 5)
        assert other.result() == 3
    return ended.result, ended.failure


def test_a_child_is_forked_while_no_other_thread_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)

    ended = in_child(lambda: _imported_meanwhile("slow_to_import"), 60)

    assert ended.result == [3, ""], ended


def _under_locks(folder: str) -> list[str]:
    """What went wrong in children that do what other threads do all the time: they take every common lock."""
    over = threading.Event()
    for number in range(4):
        Path(folder, f"of_{number}.py").write_text("import time\ntime.sleep(0)\n")

    def work(number: int) -> None:
        name = f"of_{number}"
        sys.modules.pop(name, None)
        importlib.import_module(name)
        logging.getLogger(name).error("said")
        warnings.warn(name, stacklevel=1)
        print(name, flush=True)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"text")
        re.compile(name)

    def until_over(number: int) -> None:
        while not over.is_set():
            work(number)

    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(until_over, number) for number in range(3)]
        try:
            return [in_child(lambda: work(3), 20).failure for _ in range(20)]
        finally:
            over.set()
            for other in others:
                other.result()


def test_no_child_waits_for_a_lock_of_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)

    ended = in_child(lambda: _under_locks(str(tmp_path)), 250)

    assert ended.result == [""] * 20, ended


def test_a_child_ends_although_other_children_still_run() -> None:
    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(lambda number: in_child(lambda: time.sleep(number % 2 * 6), 60), range(8)))

    assert max(one.seconds for one in ended[::2]) < 5


PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from tracing.compiler.child import in_child

def call():
    other = subprocess.Popen(["sleep", "100"])
    Path(sys.argv[1]).write_text(f"{os.getpid()} {other.pid}")
    time.sleep(100)

in_child(call, 100)
"""


def test_a_killed_parent_leaves_no_child_and_nothing_that_the_child_started(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(numbers)])
    _until(numbers.exists)
    _until(lambda: bool(numbers.read_text()))
    left = [Path("/proc") / number for number in numbers.read_text().split()]
    assert all(one.exists() for one in left)

    parent.kill()
    parent.wait()

    _until(lambda: not any(_runs(one) for one in left))


def _runs(process: Path) -> bool:
    # a process is a zombie until its parent waits for it
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(true: Any) -> None:
    for _ in range(200):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come true within 10 s")
