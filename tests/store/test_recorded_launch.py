"""Launches that a command names, and that a run may lack."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage.run_readers import ask
from handmade.records import arg, launch
from handmade.runs import saved

COMMANDS = ("show", "replay", "repro")


@pytest.mark.parametrize("index", [-1, 4, 99])
def test_every_command_lists_the_launches_of_a_run_that_lacks_one(index: int, tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(n, arg("x", "in", str(n))) for n in range(4)])

    for command in COMMANDS:
        answer = ask(command, str(run.path), "--launch", str(index))

        assert answer.status == 2
        assert f"has no launch {index}: its launches are 0 to 3\n" in answer.err


def test_a_rank_that_a_run_lacks_is_named(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0)])

    for command in ("replay", "repro"):
        answer = ask(command, str(run.path), "--launch", "0", "--rank", "3")

        assert f"{run.path} has no launches of rank 3\n" in answer.err


def test_a_run_without_launches_has_no_launch(tmp_path: Path) -> None:
    run = saved(tmp_path, [])

    for command in COMMANDS:
        assert "has no launch 0: it has no launches\n" in ask(command, str(run.path), "--launch", "0").err
