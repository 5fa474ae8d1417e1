"""A new recording of a run's program is recognised as another one, or as one with other contents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest
from handmade.records import arg, launch
from handmade.runs import saved
from msgspec.structs import replace

from tracing.analyze.runs.repetition import Repetition, changed_since, other_results, repetition
from tracing.model import Access, Cut, KernelLaunch, Outcome, Selection
from tracing.store import Run


def scale(index: int, content: str = "x", module: str | None = None) -> KernelLaunch:
    made = launch(index, arg("x_ptr", "in", content), arg("y_ptr", "out", "y"), name="scale")
    return replace(made, kernel=replace(made.kernel, module=module))


def shift(index: int) -> KernelLaunch:
    return launch(index, arg("x_ptr", "in", "x"), name="shift")


def compared(folder: Path, before: list[KernelLaunch], now: list[KernelLaunch]) -> Repetition:
    return repetition(saved(folder / "before", before), saved(folder / "now", now))


@pytest.mark.parametrize("order", [1, -1])
def test_the_same_calls_of_each_kernel_are_a_repetition_in_any_order(order: int, tmp_path: Path) -> None:
    kinds = [shift, scale][::order]

    now = [kind(index) for index, kind in enumerate(kinds)]

    assert compared(tmp_path, [shift(0), scale(1)], now) == Repetition()


@pytest.mark.parametrize(
    ("now", "kernels"),
    [
        ([], "launch 0 scale is made no more"),
        ([shift(0)], "launch 0 scale is made no more"),
        ([scale(0), shift(1)], "launch 1 shift was added"),
        ([scale(0), scale(1)], "launch 1 scale was added"),
        ([scale(0, module="1" * 32)], "launch 0 scale has other code"),
    ],
)
def test_other_kernels_are_named(now: list[KernelLaunch], kernels: str, tmp_path: Path) -> None:
    assert compared(tmp_path, [scale(0, module="0" * 32)], now) == Repetition(kernels)


def test_a_new_recording_that_ended_early_is_said_to_lack_the_launch(tmp_path: Path) -> None:
    early = saved(tmp_path / "now", [scale(0)], [Cut("OSError: No space left on device", 1)])
    ended = "was not recorded after launch 0: OSError: No space left on device"

    whole = saved(tmp_path / "whole", [scale(0), scale(1)])
    part = saved(tmp_path / "part", [scale(1)], selection=Selection(launches=(1, 2)))

    assert repetition(whole, early).ended == repetition(part, early).ended == ended


def test_the_first_launch_that_read_another_content_is_named(tmp_path: Path) -> None:
    before, now = [scale(0), scale(1), scale(2)], [scale(0), scale(1, "z"), scale(2, "z")]

    assert compared(tmp_path, before, now).contents == "launch 1 scale read another x_ptr"


@pytest.mark.parametrize(
    ("now", "answer"),
    [
        ([scale(0, "z"), scale(1), scale(2)], Repetition()),
        ([scale(0), scale(1), scale(2, "z")], Repetition("", "launch 2 scale read another x_ptr")),
        ([scale(0), scale(1)], Repetition("launch 2 scale is made no more at this position")),
        ([scale(0), scale(1), shift(2)], Repetition("launch 2 scale is made no more at this position")),
        ([scale(0), scale(1), scale(2, module="1" * 32)], Repetition("launch 2 scale has other code")),
    ],
)
def test_of_a_part_of_a_run_launches_of_one_number_are_compared(
    now: list[KernelLaunch], answer: Repetition, tmp_path: Path
) -> None:
    last = scale(2, module="0" * 32)
    part = saved(tmp_path / "part", [last], selection=Selection(launches=(2, 3)))

    assert repetition(part, saved(tmp_path / "all", now)) == answer


def test_files_that_were_changed_after_the_run_are_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("")
    run = Run(saved(tmp_path, [], path=str(program), started="2026-01-02T03:04:05Z").path)
    began = 1767323045

    os.utime(program, (began, began + 0.9))
    assert changed_since(run) == ""
    os.utime(program, (began, began + 1))
    assert changed_since(run) == "; changed since: train.py"


@pytest.mark.parametrize(
    ("read", "contents"), [("b" * 32, "launch 0 scale read another x_ptr"), ("a" * 32, "")]
)
def test_only_what_a_launch_read_of_an_argument_counts(read: str, contents: str, tmp_path: Path) -> None:
    before = saved(tmp_path / "before", [scale(0, "x")], [Access(0, {0: "a" * 32})])
    now = saved(tmp_path / "now", [scale(0, "z")], [Access(0, {0: read})])

    assert repetition(before, now) == Repetition("", contents)


@pytest.mark.parametrize(
    ("status", "written", "said"),
    [
        ("passed", "b", "launch 0 scale wrote another y_ptr, and the results of the run differ from eager's"),
        ("passed", "a", "results agree with eager's, and the results of the run differ from eager's"),
        ("differs", "b", ""),
    ],
)
def test_results_that_differ_in_the_run_only_are_named(
    status: Literal["passed", "differs"], written: str, said: str, tmp_path: Path
) -> None:
    before, now = (
        saved(tmp_path / name, [scale(0)], [Access(0, written={1: bits * 32}), Outcome(outcome, "")])
        for name, bits, outcome in [("before", "a", "differs"), ("now", written, status)]
    )

    assert other_results(before, now) == said
    assert other_results(now, now) == ""
