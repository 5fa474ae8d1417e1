"""Launches that reach only results that agree with eager explain no difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from handmade.records import META, arg, launch
from handmade.runs import Operators, digits, saved

from tracing.analyze.judge.findings import JudgedLaunch
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.judge.reached_results import ReachedResults, reached_results
from tracing.model import (
    Digest,
    KernelArg,
    KernelLaunch,
    Outcome,
    Record,
    Result,
    Start,
    Storage,
    TensorValue,
)
from tracing.report.judge.judgement import judgement_text
from tracing.report.judge.judgement_json import judgement_json

INPUT, MIDDLE, LAST, SUM = range(4)
MID, END = arg("o", "out", "-", "mid", storage=MIDDLE), arg("o", "out", "-", "last", storage=LAST)
FIRST = launch(0, arg("x", "in", "x", storage=INPUT), MID, name="first")
SECOND = launch(1, arg("x", "in", "mid", storage=MIDDLE), END, name="second")


def value(storage: int, word: str) -> TensorValue:
    return TensorValue(META, Digest(digits(word)), 4096 + 64 * storage)


def reached(
    folder: Path,
    results: Mapping[str, TensorValue],
    *differing: str,
    launches: tuple[KernelLaunch, ...] = (FIRST, SECOND),
    records: list[Record] | None = None,
    other_numbers: tuple[str, ...] = (),
    **info: object,
) -> Mapping[int, ReachedResults]:
    storages = [Storage(number, 4096 + 64 * number, 16) for number in range(4)]
    begin = Start("input 0", value(INPUT, "x"))
    ends = [Result(name, one) for name, one in results.items()]
    run = saved(folder, launches, [*storages, begin, *(records or []), *ends], ended=False, **info)
    outcome = Outcome("differs", "", differing=differing, other_numbers=other_numbers)
    return reached_results(run, run.processes()[0], outcome)


def suspects(of: Mapping[int, ReachedResults]) -> RunJudgement:
    launches = tuple(JudgedLaunch(n, name, -1, "no reference") for n, name in enumerate(("first", "second")))
    return RunJudgement(launches, (), (), Outcome("differs", ""), reached=of)


def test_a_launch_all_of_whose_outputs_are_results_that_agree_is_cleared(tmp_path: Path) -> None:
    results = {"output[0]": value(MIDDLE, "mid"), "output[1]": value(LAST, "last")}

    judgement = suspects(reached(tmp_path, results, "output[1]"))

    lines = [*judgement_text(judgement, [])]
    assert judgement_json(judgement)["suspects"] == [1]
    assert lines[0] == "✗ the results differ from eager's; the suspect is launch 1 second"
    assert "    cleared   launch 0 first: all that it wrote is output[0], which agrees" in lines


def test_a_launch_that_wrote_more_than_the_result_is_not_cleared(tmp_path: Path) -> None:
    more = launch(0, *FIRST.args, arg("more", "out", "-", "more", storage=SUM), name="first")
    results = {"output[0]": value(MIDDLE, "mid"), "output[1]": value(LAST, "last")}

    judgement = suspects(reached(tmp_path, results, "output[1]", launches=(more, SECOND)))

    assert [one.launch for one in judgement.suspects] == [1, 0]  # a result that agrees depends on launch 0


def test_each_of_several_outputs_may_depend_on_other_inputs(tmp_path: Path) -> None:
    # a fused launch computes output[0] from nothing that `first` wrote
    fused = launch(1, *SECOND.args, arg("own", "out", "-", "sum", storage=SUM), name="second")
    results = {"output[0]": value(SUM, "sum"), "output[1]": value(LAST, "last")}

    judgement = suspects(reached(tmp_path, results, "output[1]", launches=(FIRST, fused)))

    lines = [*judgement_text(judgement, [])]
    assert "    less so   launch 1 second: output[0] depends on it, and agrees" in lines
    assert not any("launch 0 first: output" in line for line in lines)


def test_a_launch_that_races_is_the_most_suspect_one(tmp_path: Path) -> None:
    results = {"output[1]": value(LAST, "last")}

    for racing, expected in (({}, [0, 1]), ({"1 second": "races"}, [1, 0])):
        judgement = replace(suspects(reached(tmp_path, results, "output[1]")), wrong_accesses=racing)
        lines = [*judgement_text(judgement, [])]
        assert [one.launch for one in judgement.suspects] == expected
        assert [line for line in lines if "most so" in line] == [
            f"    most so   launch {one}: it races" for one in racing
        ]


def test_a_launch_that_only_an_agreeing_result_depends_on_is_cleared(tmp_path: Path) -> None:
    separate = launch(1, arg("x", "in", "x", storage=INPUT), *SECOND.args[1:], name="second")
    total = Operators().call(2, "aten::sum", [MIDDLE], [SUM]).records
    results = {"output[0]": value(SUM, "sum"), "output[1]": value(LAST, "last")}

    judgement = suspects(reached(tmp_path, results, "output[1]", launches=(FIRST, separate), records=total))

    assert [one.launch for one in judgement.suspects] == [1]
    line = "    cleared   launch 0 first: only output[0] depends on it, and agrees"
    assert line in [*judgement_text(judgement, [])]


def test_a_launch_that_nothing_that_differs_may_depend_on_is_cleared(tmp_path: Path) -> None:
    # which of its inputs each output of a fused launch depends on is not known, and its numbers are drawn
    separate = launch(1, arg("x", "in", "x", storage=INPUT), *SECOND.args[1:], name="second")
    results = {"output[0]": value(MIDDLE, "mid"), "output[1]": value(LAST, "last")}

    of = reached(
        tmp_path, results, "output[1]", launches=(FIRST, separate), other_numbers=("output[0]",)
    )  # fmt: skip

    judgement = suspects(of)
    assert [one.launch for one in judgement.suspects] == [1]
    line = "    cleared   launch 0 first: only output[0] may depend on it, and nothing that differs"
    assert line in [*judgement_text(judgement, [])]


def test_the_most_suspect_launch_is_the_one_without_a_result_that_agrees(tmp_path: Path) -> None:
    total = Operators().call(2, "aten::sum", [MIDDLE], [SUM]).records
    results = {"output[0]": value(SUM, "sum"), "output[1]": value(LAST, "last")}

    judgement = suspects(reached(tmp_path, results, "output[1]", records=total))

    assert judgement_json(judgement)["suspects"] == [1, 0]
    line = "    less so   launch 0 first: output[0] depends on it, and agrees"
    assert line in [*judgement_text(judgement, [])]


@pytest.mark.parametrize(
    ("records", "info", "differing"),
    [
        ([], {}, ("output[1]", "a number")),  # of which no memory is known
        ([], {"operators": "none"}, ("output[1]",)),
        ([Storage(LAST, 9000, 16)], {}, ("output[1]",)),  # the result is not in memory that was seen
    ],
)
def test_nothing_is_cleared_if_the_writers_of_a_differing_result_are_not_known(
    records: list[Record], info: dict[str, object], differing: tuple[str, ...], tmp_path: Path
) -> None:
    results = {"output[0]": value(MIDDLE, "mid"), "output[1]": value(LAST, "last")}

    of = reached(tmp_path, results, *differing, records=records, **info)

    assert [one.launch for one in suspects(of).suspects] == [0, 1]


def test_memory_that_no_recorded_write_explains_is_not_known(tmp_path: Path) -> None:
    unknown: KernelArg = arg("y", "in", "y", storage=SUM)
    reading = launch(1, unknown, *SECOND.args[1:], name="second")
    results = {"output[0]": value(MIDDLE, "mid"), "output[1]": value(LAST, "last")}

    assert reached(tmp_path, results, "output[1]", launches=(FIRST, reading)) == {}
