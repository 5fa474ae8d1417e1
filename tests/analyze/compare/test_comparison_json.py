"""`tracing compare --json` prints exactly the keys that docs/compare.md documents, with the right values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from commands import ROOT
from handmade.records import META, arg, launch
from handmade.runs import Operators, digits, saved
from test_causes import ADDRESSES, EMPTY, X, Y, overrun, reader, result, writer
from typer.testing import CliRunner

from tracing.analyze.compare.accused import AccusedKind
from tracing.analyze.compare.cause_kinds import UnknownCause
from tracing.analyze.compare.divergence_kinds import InputDiffers, LaunchDiffers, LaunchPair
from tracing.analyze.compare.kernel_code import CodeDifference
from tracing.analyze.compare.signature_pair import SettingChange
from tracing.analyze.runs.call_sites import LaunchOrigin
from tracing.cli import app
from tracing.model import (
    CallSite,
    Digest,
    Outcome,
    PlainValue,
    Record,
    Result,
    Selection,
    Start,
    TensorValue,
    Values,
)
from tracing.report.compare.comparison_json import divergence_json

PAGE = ROOT / "docs" / "compare.md"
Side = tuple[list[Any], list[Record]]


def answered(folder: Path, a: Side, b: Side, *, ended: bool = True) -> Mapping[str, Any]:
    """The JSON printed for two runs, whose `status` equals the exit status."""
    runs = (saved(folder / "a", *a, ended=ended), saved(folder / "b", *b, ended=ended))
    done = CliRunner().invoke(app, ["compare", *(str(run.path) for run in runs), "--json"])
    said: Mapping[str, Any] = json.loads(done.stdout)
    assert done.exit_code == said["status"]
    return said


def documented(title: str) -> set[str]:
    """The keys in the table after a heading of docs/compare.md."""
    table = PAGE.read_text().partition(f"{title}\n")[2].partition("|---|---|\n")[2].partition("\n\n")[0]
    return {key for line in table.splitlines() for key in re.findall(r"`(\w+)`", line.split("|")[1])}


def test_every_kind_of_accused_is_documented() -> None:
    table = PAGE.read_text().partition("| kind of accused | who |\n|---|---|\n")[2]

    assert sorted(re.findall(r"^\| `([a-z ]+)`", table, re.MULTILINE)) == sorted(get_args(AccusedKind))


def keys(said: Mapping[str, Any]) -> tuple[set[str], set[str], set[str]]:
    """The keys of the answer, of its divergences, and of their accused."""
    first = said["divergences"][0]
    return set(said), set(first) - {"diff"}, set(first["accused"])


DIFFERENT = ([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z")], [])
RESULTS = (([], [*EMPTY, Result("output", PlainValue("int", word))]) for word in "12")
FAILED = (([], [*EMPTY, Outcome("failed", word, message=word)]) for word in ("E: one", "E: two"))
STARTS = (([], [*EMPTY, Start("input 0", TensorValue(META, Digest(digits(word))))]) for word in "yz")


@pytest.mark.parametrize(
    ("sides", "ended"),
    [(DIFFERENT, True), (tuple(RESULTS), True), (tuple(FAILED), False), (tuple(STARTS), True)],
    ids=["launch", "result", "outcome", "start"],
)
def test_every_key_is_documented_and_every_documented_key_is_there(
    sides: tuple[Side, Side], ended: bool, tmp_path: Path
) -> None:
    printed = keys(answered(tmp_path, *sides, ended=ended))

    titles = ("## `--json`", "### A divergence", "### The accused")
    assert printed == tuple(documented(title) - {"diff"} for title in titles)


def test_equal_runs_have_no_divergence(tmp_path: Path) -> None:
    said = answered(tmp_path, DIFFERENT[0], DIFFERENT[0])

    assert (said["status"], said["divergences"], said["pairs"]) == (0, [], 2)


def test_a_divergence_names_launch_kernel_argument_and_who_is_accused(tmp_path: Path) -> None:
    (divergence,) = answered(tmp_path, *DIFFERENT)["divergences"]

    assert (divergence["kind"], divergence["launch"], divergence["kernel"]) == (
        "input",
        {"a": 1, "b": 1},
        "reader",
    )
    assert (divergence["argument"], divergence["a"], divergence["b"]) == ("in_ptr", digits("y"), digits("z"))
    accused = {"kind": "host", "name": "", "launch": {"a": 0, "b": 0}, "argument": None, "runs": "b"}
    assert divergence["accused"] == {**accused, "certain": True, "through": [], "decides": None}
    assert (
        divergence["evidence"][0] == "launch #0 writer wrote this tensor last, as out_ptr, with equal bits;"
    )
    assert divergence["next"] and all(one.startswith("tracing ") for one in divergence["next"])


def test_an_undecided_divergence_names_the_command_that_decides_it(tmp_path: Path) -> None:
    mm = Operators().call(1, "aten::mm", [Y], [X]).records

    (divergence,) = answered(tmp_path, *(([writer(0, "y", Y), reader(1, value)], mm) for value in "yz"))[
        "divergences"
    ]

    assert (divergence["accused"]["kind"], divergence["accused"]["certain"]) == ("operator", False)
    assert "--operators digests" in divergence["accused"]["decides"]


def test_a_launch_of_one_run_has_no_number_in_the_other(tmp_path: Path) -> None:
    (divergence,) = answered(tmp_path, ([writer(0)], []), ([writer(0), writer(1, "w", Y, "extra")], []))[
        "divergences"
    ]

    assert (divergence["kind"], divergence["launch"]) == ("end", {"a": None, "b": 1})
    assert divergence["accused"]["launch"] == {"a": None, "b": 1}


def test_an_overrun_names_the_launch_that_stored_and_not_its_neighbour(tmp_path: Path) -> None:
    def run(value: str, *outside: Record) -> Side:
        return [writer(0, "n", Y, "neighbour"), writer(1), reader(2, value, Y)], [*ADDRESSES, *outside]

    divergence = answered(tmp_path, run("n"), run("hit", overrun(1)))["divergences"][0]

    assert divergence["accused"]["kind"] == "out of bounds"
    assert (divergence["accused"]["name"], divergence["accused"]["argument"]) == ("writer", "out_ptr")


def test_differing_elements_of_small_tensors_have_both_values(tmp_path: Path) -> None:
    def run(value: str, *elements: float) -> Side:
        return [writer(0), reader(1, value)], [Values(1, 0, "before", elements)]

    (divergence,) = answered(tmp_path, run("y", 1.0, 2.0), run("z", 1.0, 3.0))["divergences"]

    assert divergence["values"] == [[1, 2.0, 3.0]]


def test_an_unexplained_result_accuses_itself_and_names_the_command_that_decides(tmp_path: Path) -> None:
    a, b = (([writer(0)], [Result("output", PlainValue("int", word))]) for word in "12")

    said = answered(tmp_path, a, b)

    assert said["results"] == [{"name": "output", "rank": 0, "a": "1", "b": "2"}]
    (divergence,) = said["divergences"]
    assert (divergence["kind"], divergence["accused"]["kind"], divergence["accused"]["name"]) == (
        "result",
        "result",
        "output",
    )
    assert "--operators digests" in divergence["accused"]["decides"]


def test_a_result_of_an_operator_that_is_not_deterministic_leads_to_a_script_that_repeats_it(
    tmp_path: Path,
) -> None:
    sides = []
    for value in "yz":
        mm = Operators().call(1, "aten::mm", [Y], [X], bits=("y", value))
        sides.append(([writer(0, "y", Y)], [*ADDRESSES, *mm.records, result(value, X)]))

    (divergence,) = answered(tmp_path, *sides)["divergences"]

    assert (divergence["kind"], divergence["accused"]["name"]) == ("result", "aten::mm")
    assert "this operator is not deterministic" in divergence["evidence"][0]
    (command,) = divergence["next"]
    assert "--operators digests --keep-inputs --launches 1:2" in command
    assert command.endswith(" --operator 0")


def test_what_was_not_compared_is_listed(tmp_path: Path) -> None:
    for name, selection in (("a", Selection()), ("b", Selection(launches=(1, 2)))):
        launches = [one for one in DIFFERENT[0][0] if selection.wants(one.index, "", "forward")]
        saved(tmp_path / name, launches, selection=selection)
    paths = [str(next((tmp_path / name).iterdir())) for name in "ab"]

    said = json.loads(CliRunner().invoke(app, ["compare", *paths, "--json"]).stdout)

    assert (said["status"], said["pairs"]) == (2, 1)
    assert (
        said["selected"]
        == "b was recorded with --launches 1:2: what one of the runs left out is not compared"
    )


def json_of(divergence: Any, **more: Any) -> Mapping[str, Any]:
    given = {"site": None, "values": [], "evidence": [], "commands": [], "decides": None, **more}
    return divergence_json(divergence, **given)


PAIR = LaunchPair(0, *(launch(index, arg("in_ptr", "in", "x")) for index in (0, 0)))


def test_a_call_site_has_file_line_and_iteration() -> None:
    site = LaunchOrigin(CallSite(0, "case.py", 31, "fn"), 2, 9)

    said = json_of(InputDiffers(PAIR, 0, UnknownCause("it was not recorded")), site=site)

    assert (said["site"], said["iteration"]) == ("case.py:31", 2)
    assert said["evidence"] == ["cannot be decided: it was not recorded"]


def test_a_different_launch_has_its_settings_in_both_runs_and_the_diff_of_its_code() -> None:
    code = CodeDifference("source", ("-x * 2", "+x * 3"))

    said = json_of(LaunchDiffers(PAIR, (SettingChange("grid", "1", "2"),), code, False, ()))

    assert (said["a"], said["b"], said["diff"]) == ({"grid": "1"}, {"grid": "2"}, ["-x * 2", "+x * 3"])
