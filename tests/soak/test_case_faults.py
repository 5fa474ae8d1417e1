"""Each fault of tests/data/bisected.py: a search of the case has to name it.

The table of docs/bisect-case.md is written by this run.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
import torch
from faults.case_faults import FAULTS, in_warm_process, searched

PAGE = Path(__file__).parents[2] / "docs" / "bisect-case.md"
BEGIN, END = "<!-- table: tests/soak/test_case_faults.py -->", "<!-- end -->"


@pytest.mark.timeout(7200)
def test_every_fault_is_named(tmp_path: Path) -> None:
    answers = in_warm_process(lambda: [searched(fault, tmp_path, 1800) for fault in FAULTS], 7000)
    _write(answers)

    assert {fault.name: one["accused"] for fault, one in zip(FAULTS, answers, strict=True)} == {
        fault.name: fault.accused for fault in FAULTS
    }


def _write(answers: list[dict[str, Any]]) -> None:
    rows = ["| fault in | what it does | accused | builds | s |", "|" + "---|" * 5]
    right = 0
    for fault, one in zip(FAULTS, answers, strict=True):
        right += one["accused"] == fault.accused
        named = one["accused"] if one["accused"] == fault.accused else f"**wrong**: {one['accused']}"
        rows.append(f"| {fault.layer} | {fault.does} | {named} | {one['built']} | {one['seconds']:.0f} |")
    summary = (
        f"Of {len(FAULTS)} faults {right} were named. torch {torch.__version__.split('+')[0]}, "
        f"Python {platform.python_version()}, a 2-core machine."
    )
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text("\n".join([f"{before}{BEGIN}", summary, "", *rows, f"{END}{after}"]))
