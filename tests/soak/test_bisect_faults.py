"""Forty faults, each in one pass of MLIR, LLVM or ptxas, on two targets: bisect never blames another pass.

This run writes the table of docs/bisect.md.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from pathlib import Path

import pytest
import triton
from faults.pass_faults import (
    FAULTS,
    Verdict,
    bisected,
    build_library,
    environment,
    needs_exported_llvm,
    outcome,
    recorded,
)

PAGE = Path(__file__).parents[2] / "docs" / "bisect.md"
BEGIN, END = "<!-- table: tests/soak/test_bisect_faults.py -->", "<!-- end -->"
UNDECIDED = 4  # that may be


@needs_exported_llvm
@pytest.mark.timeout(3600)
def test_no_fault_is_blamed_on_another_pass_and_almost_all_are_decided(tmp_path: Path) -> None:
    library = build_library(tmp_path)
    verdicts = []
    for number, fault in enumerate(FAULTS):
        variables = environment(fault, library)
        run = recorded(tmp_path / str(number), variables, fault.kernel, fault.target)
        started = time.perf_counter()
        done = bisected(run, fault, variables)
        result, named = outcome(fault, done)
        verdicts.append(Verdict(fault, result, named, time.perf_counter() - started, done.stdout))
        print(f"{fault}: {result} ({named}), {verdicts[-1].seconds:.1f} s", flush=True)
    _write(verdicts)

    counted = Counter(one.outcome for one in verdicts)
    assert len(verdicts) == 40
    assert counted["wrong"] == counted["undecided, culprit missing"] == 0, counted
    assert counted["undecided, culprit named"] <= UNDECIDED, counted


def _write(verdicts: list[Verdict]) -> None:
    rows = [
        "| stage | faulty pass | target | kernel | what it does | judged by | named | s |",
        "|" + "---|" * 8,
    ]
    for one in verdicts:
        fault = one.fault
        named = one.named if one.outcome == "right" else f"**{one.outcome}**: {one.named}"
        rows.append(
            f"| {fault.stage} | {fault.culprit} | {fault.target} | {fault.kernel} | {fault.does} "
            f"| `{fault.given}` | {named} | {one.seconds:.0f} |"
        )
    right = sum(one.outcome == "right" for one in verdicts)
    wrong = sum(one.outcome == "wrong" for one in verdicts)
    summary = (
        f"Of {len(verdicts)} faults {right} were blamed on the faulty pass and {wrong} on another one; "
        f"{len(verdicts) - right - wrong} could not be decided. Triton {triton.__version__}, "
        f"Python {platform.python_version()}, a 2-core machine."
    )
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([f"{before}{BEGIN}", summary, "", *rows, f"{END}{after}"]))
