"""The last lines of `tracing run`: verdict, findings, the next command."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import launch
from handmade.runs import saved

from tracing.analyze.judge.findings import JudgedLaunch
from tracing.analyze.judge.judgement import RunJudgement
from tracing.cli.answers.judge_answer import JudgedRun
from tracing.cli.answers.run_answer import RunAnswer
from tracing.model import FrameCompile, GraphBreak, NotCovered, Outcome, OutOfBounds

PASSED = Outcome("passed", "the result agrees with eager")


def test_a_case_without_a_triton_kernel_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = FrameCompile("0/0", "f", "case.py:3", breaks=(GraphBreak("a print", "case.py:5"),))
    answer = RunAnswer(saved(tmp_path, [], [broken]), PASSED)

    assert answer.print(show=False, as_json=False) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == [
        "no kernel: the result agrees with eager",
        "no Triton kernel: a graph break at case.py:5: a print",
    ]


def test_after_the_verdict_come_findings_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    padding = OutOfBounds(0, "x", "load", 100, (1, 0, 0), 0, 4, 1, True, "case.py:7")
    overrun = OutOfBounds(0, "y", "store", 100, (1, 0, 0), 0, 4, 1, True, "case.py:8")
    run = saved(tmp_path, [launch(0)], [padding, overrun, NotCovered("a fork", "one process")])

    assert RunAnswer(run, PASSED).print(show=False, as_json=False) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "passed: the result agrees with eager"
    assert said[1].startswith("out of bounds: #0 triton_poi_fused_mul_0: 1 store") and "case.py:8" in said[1]
    assert said[2:] == [
        "not covered: a fork; to cover it: one process",
        f"    next      tracing show {run.path}",
    ]


def test_results_that_agree_do_not_pass_if_a_launch_is_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    off = RunJudgement((JudgedLaunch(0, "k", 0, "off"),), (), (), PASSED)
    answer = RunAnswer(saved(tmp_path, [launch(0)]), PASSED, JudgedRun(off, ()))

    assert answer.print(show=False, as_json=False) == 1
    assert capsys.readouterr().err.splitlines() == [
        "passed, but not judged right: the result agrees with eager"
    ]


def test_an_outcome_that_is_not_decided_is_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = saved(tmp_path, [launch(0)])
    answer = RunAnswer(run, Outcome("not decided", "output: compiled and eager differ"))

    assert answer.print(show=False, as_json=False) == 2
    assert capsys.readouterr().err.splitlines()[0] == "not decided: output: compiled and eager differ"


def test_all_results_that_differ_are_listed_as_json(tmp_path: Path) -> None:
    names = tuple(f"output[{i}]" for i in range(9))
    answer = RunAnswer(saved(tmp_path, [launch(0)]), Outcome("differs", "", differing=names))

    assert answer.json()["differing"] == [*names]


def test_less_precise_results_are_listed_as_json(tmp_path: Path) -> None:
    less = "output is 8.7 roundings from exact, eager's 0.53"
    answer = RunAnswer(saved(tmp_path, [launch(0)]), Outcome("passed", "", less_precise=(less,)))

    assert (answer.status, answer.json()["less_precise"]) == (0, [less])


def test_a_case_that_raises_is_shown_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = tmp_path / "case.py"
    case.write_text("def f():\n    raise ValueError('no')\n")
    failed = Outcome("failed", "ValueError: no (case.py:2)")
    run = saved(tmp_path / "runs", [], path=str(case))

    assert RunAnswer(run, failed).print(show=False, as_json=False) == 2
    assert "    2 | raise ValueError('no')\n" in capsys.readouterr().err
