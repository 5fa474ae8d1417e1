"""Kernels that read elements which nothing wrote: which launch is the first, and how many there are."""

from __future__ import annotations

import json
from pathlib import Path

from commands import tracing
from handmade.records import arg, launch
from handmade.runs import saved

from tracing.analyze.memory.uninitialised_reads import UninitialisedRead, uninitialised_reads
from tracing.cli.answers.findings import findings_text
from tracing.model import Access
from tracing.store import Run


def run_of(folder: Path) -> Run:
    launches = [
        launch(index, arg("x", "in", "x"), arg("y", "in", "y"), name=name)
        for index, name in enumerate(("sum", "last", "sum", "last"))
    ]
    accesses = [
        Access(0, uninitialised={}),
        Access(1, uninitialised={1: (3, 1)}),
        Access(2, uninitialised={0: (12, 4), 1: (0, 2)}),
        Access(3, uninitialised={1: (4, 2)}),
    ]
    return saved(folder, launches, accesses)


def test_each_kernel_and_argument_is_one_finding_at_its_first_launch(tmp_path: Path) -> None:
    assert list(uninitialised_reads(run_of(tmp_path))) == [
        UninitialisedRead(0, 1, "last", "y", 3, 1, 2),
        UninitialisedRead(0, 2, "sum", "x", 12, 4, 1),
        UninitialisedRead(0, 2, "sum", "y", 0, 2, 1),
    ]


def test_findings_name_the_elements_and_the_command_that_decides(tmp_path: Path) -> None:
    first, second, _ = (line.plain for line in findings_text(run_of(tmp_path)) if "uninit" in line.plain)

    assert first.startswith(
        "uninitialised: #1 last, and 1 later launch of it: reads 1 element of y, [3], that nothing wrote: "
    )
    assert "tracing repeat" in first and "--perturb" in first
    assert "#2 sum: reads 4 elements of x, from [12] on, that nothing wrote" in second


def test_show_prints_them_with_their_launch_and_as_data(tmp_path: Path) -> None:
    run = run_of(tmp_path)

    whole, one, data = (
        tracing("show", run.name, *words, runs=tmp_path).stdout
        for words in ((), ("--launch", "2"), ("--json",))
    )

    assert whole.count("uninitialised: ") == 3 and one.count("uninitialised: ") == 2
    assert [read["first"] for read in json.loads(data)["uninitialised_reads"]] == [3, 12, 0]
