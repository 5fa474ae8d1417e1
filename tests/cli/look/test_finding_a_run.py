"""A name that fits no run, kernel or pass is answered at once, and "latest" says if it is not usable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from handmade.runs import saved
from typer.testing import CliRunner

from tracing.cli.app import app
from tracing.model import Compilation, Outcome, PassStart, Record


def asked(*words: str, status: int) -> tuple[str, str]:
    """What a command prints on standard output and on standard error."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == status, done.output
    return done.stdout, done.stderr


@pytest.mark.parametrize("command", [("list",), ("show", "latest"), ("passes", "silu")])
def test_a_folder_of_runs_that_is_missing_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    _, said = asked(*command, "--runs", str(tmp_path / "nothing"), status=2)

    assert f"there is no folder {tmp_path / 'nothing'}" in said


def test_a_run_of_the_readme_that_is_not_there_names_the_command_that_records_it(tmp_path: Path) -> None:
    _, printed = asked("show", "demo-sound", "--runs", str(tmp_path), status=2)

    assert "record it with `make demo`" in printed


def test_a_folder_without_runs_is_no_error(tmp_path: Path) -> None:
    assert asked("list", "--runs", str(tmp_path), status=0) == (
        "",
        f"{tmp_path} has no run; record one with `tracing run CASE`\n",
    )


@pytest.mark.parametrize(
    ("records", "note"),
    [
        ([Outcome("failed", "ValueError: no")], "which failed: ValueError: no"),
        ([Outcome("interrupted", "by Ctrl-C")], "which was interrupted"),
        ([], "which has no end: the process was killed, or the disk was full"),
        ([Outcome("passed", "the result agrees with eager")], ""),
    ],
)
def test_latest_says_if_it_is_not_usable(records: list[Record], note: str, tmp_path: Path) -> None:
    run = saved(tmp_path, [], records, ended=False)

    _, said = asked("winners", "latest", "--runs", str(tmp_path), status=0)

    assert (f"note: latest is {run.path}, {note}\n" in said) if note else said == ""


def test_latest_is_the_newest_run_that_can_be_read(tmp_path: Path) -> None:
    run = saved(tmp_path, [], [])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/run.json").write_text("{")

    assert run.name in asked("show", "latest", "--runs", str(tmp_path), status=0)[0]


def test_a_run_before_the_latest_is_named_by_its_distance(tmp_path: Path) -> None:
    runs = [saved(tmp_path / str(number), [], []) for number in range(3)]
    for number, run in enumerate(runs):
        os.utime(run.path / "run.json", (number, number))
        run.path.rename(tmp_path / f"run{number}")

    shown = [asked("show", name, "--runs", str(tmp_path), status=0)[0] for name in ("latest~1", "latest~2")]

    assert "run1" in shown[0] and "run0" in shown[1]
    assert "there are no 4 runs" in asked("show", "latest~3", "--runs", str(tmp_path), status=2)[1]


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("ddp", "ddp-job-29500-7"),
        ("ddp~1", "ddp-20260102-030405"),
        ("a-job-x", "a-job-x-20260102-030405"),
        ("ddp.py~2", ""),
    ],
)
def test_a_run_of_a_program_is_named_by_its_distance_from_the_newest(
    name: str, run: str, tmp_path: Path
) -> None:
    for at, known in enumerate(["ddp-20260102-030405", "ddp-job-29500-7", "a-job-x-20260102-030405"]):
        saved(tmp_path / "made", [], []).path.rename(tmp_path / known)
        os.utime(tmp_path / known / "run.json", (at, at))

    shown, _ = asked("show", name, "--runs", str(tmp_path), status=0 if run else 2)

    assert run in shown


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("softmxa", ["softmax-20260102-030405"]),
        ("{runs}/softmx", ["softmax-20260102-030405"]),
        ("softmax-2026010", ["softmax-20260102-030405"]),
        ("attn-20260102-030405", ["attention-20260102-030406-1"]),
        ("att", ["attention-20260102-030406-1"]),
        ("latset", ["latest"]),
    ],
)
@pytest.mark.parametrize("command", ["show", "judge", "compare"])
def test_a_misspelt_run_is_answered_with_the_nearest_names(
    command: str, name: str, near: list[str], tmp_path: Path
) -> None:
    for known in ("softmax-20260102-030405", "attention-20260102-030406-1"):
        saved(tmp_path / "made", [], []).path.rename(tmp_path / known)

    words = [command, name.format(runs=tmp_path), *(["latest"] if command == "compare" else [])]
    _, said = asked(*words, "--runs", str(tmp_path), status=2)

    assert f"nearest: {', '.join(near)};" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "problem", "near"),
    [
        (("--pass", "tritongpu-coalesc"), "no pass tritongpu-coalesc", "tritongpu-coalesce"),
        (("--kernel", "sofmax", "--pass", "0"), "no kernel sofmax", "softmax"),
        (("--pass", "7"), "no pass 7", "0 to 1"),
    ],
)
def test_a_misspelt_kernel_or_pass_is_answered_before_ir_is_derived(
    words: tuple[str, ...], problem: str, near: str, tmp_path: Path
) -> None:
    passes = [
        PassStart(0, n, "ttgir", name, "", (), "", "") for n, name in enumerate(["cse", "tritongpu-coalesce"])
    ]
    run = saved(tmp_path, [], [Compilation(0, "softmax", "ab", "cuda:90", {}, ""), *passes])

    for command in ("passes", "resume", "reduce", "debug"):
        _, said = asked(command, str(run.path), *words, "--runs", str(tmp_path), status=2)

        assert problem in said and near in said
    assert run.underived()


def test_a_misspelt_pass_of_a_case_is_answered_before_the_case_runs() -> None:
    _, said = asked("debug", "silu", "--pass", "tritongpu-coalesc", status=2)

    assert "this Triton has no pass tritongpu-coalesc" in said and "tritongpu-coalesce" in said
