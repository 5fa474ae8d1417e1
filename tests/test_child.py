"""Calls in a child process: by several threads at once, too."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracing.compiler import child
from tracing.compiler.child import in_child, opened_gpu, tell


def _most_forks_at_once() -> int:
    active = most = 0

    def before() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        time.sleep(0.05)

    def behind() -> None:
        nonlocal active
        active -= 1

    os.register_at_fork(before=before, after_in_parent=behind)
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda number: in_child(lambda: number, 20), range(4)))
    assert [one.result for one in ended] == [0, 1, 2, 3]
    return most


def test_threads_fork_one_after_the_other_as_packages_with_locks_ask() -> None:
    ended = in_child(_most_forks_at_once, 60)  # a child, as what is registered at a fork stays

    assert ended.result == 1, ended


def test_a_child_tells_what_it_does_while_it_does_it() -> None:
    heard: list[str] = []

    ended = in_child(lambda: [tell("one"), tell("two " * 50_000)] and 3, 20, heard=heard.append)

    assert (heard, ended.result) == (["one", "two " * 50_000], 3)


def test_a_child_without_a_limit_of_time_ends_by_itself() -> None:
    assert in_child(lambda: time.sleep(0.1), None).failure == ""


def test_an_interrupted_child_has_time_to_write_down_what_it_knows(tmp_path: Path) -> None:
    def work() -> None:
        try:
            tell("started")
            time.sleep(30)
        except KeyboardInterrupt:
            (tmp_path / "known").write_text("all")

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_child(work, None, heard=interrupt, patience=10)

    assert (tmp_path / "known").read_text() == "all"


def test_a_program_answers_in_the_place_of_a_fork() -> None:
    code = (
        "import sys; from tracing.compiler.child import respond, tell; "
        "respond(lambda: [tell('here'), sys.argv[1]], int(sys.argv[2]))"
    )
    heard: list[str] = []

    ended = in_child(lambda: 1 / 0, 60, heard=heard.append, program=[sys.executable, "-c", code, "given"])

    assert (ended.result, heard) == ([None, "given"], ["here"])


def test_a_process_that_has_opened_a_gpu_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_GPUS", (str(tmp_path / "nvidia"),))

    assert not opened_gpu()
    with (tmp_path / "nvidia0").open("w"):
        assert opened_gpu()
