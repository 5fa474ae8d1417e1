"""The operators that `tracing show --operators` lists, and one in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import tracing
from documents.json_keys import require_documented
from handmade.records import arg, launch
from handmade.runs import Operators, digits, saved

from tracing import store
from tracing.model import CallSite, ProgramStep


@pytest.fixture
def run(tmp_path: Path) -> store.Run:
    calls = Operators().call(0, "aten::rand", writes=[1])
    calls.call(1, "aten::mm", [1], [2], bits=("a", "b"), site=3)
    records = [*calls.records, CallSite(3, "/case.py", 9, "forward"), ProgramStep(0, 1, 1)]
    return saved(tmp_path, [launch(0, arg("x", "in", "a", storage=1))], records, operators="digests")


def test_each_operator_has_its_number_its_position_among_launches_its_step_and_its_line(
    run: store.Run,
) -> None:
    lines = tracing("show", str(run.path), "--operators", runs=run.path.parent).stdout.splitlines()

    assert lines == [
        "operator #0 aten::rand (after 0 launches, step 0)",
        "operator #1 aten::mm (after 1 launch, step 1)  # /case.py:9 in forward",
        f"2 operator calls outside of Triton; one in full: `tracing show {run.path} --operator N`",
    ]


def test_one_operator_is_shown_with_the_digests_of_what_it_read_and_wrote(run: store.Run) -> None:
    shown = tracing("show", str(run.path), "--operator", "1", runs=run.path.parent).stdout

    assert "input 0 = t: f32[4]" in shown and f"before {digits('a')}" in shown
    assert "output 0 = t: f32[4]" in shown and f"after  {digits('b')}" in shown


def test_operators_as_json_have_the_documented_keys(run: store.Run) -> None:
    shown = tracing("show", str(run.path), "--operators", "--json", runs=run.path.parent).stdout

    require_documented(shown, "### With `--operators` or `--operator N`")
    assert [one["step"] for one in json.loads(shown)["operators"]] == [0, 1]


def test_an_unknown_operator_is_refused_with_the_command_that_lists_them(run: store.Run) -> None:
    done = tracing("show", str(run.path), "--operator", "2", runs=run.path.parent)

    assert done.returncode == 2
    assert f"{run.path} has no operator 2" in done.stderr and "--operators" in done.stderr


def test_a_run_with_digests_of_operators_names_the_command_that_shows_them(run: store.Run) -> None:
    shown = tracing("show", str(run.path), runs=run.path.parent).stdout

    assert f"operators outside of Triton, with digests: `tracing show {run.path} --operators`" in shown
