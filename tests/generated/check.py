"""Records and compares a random program with a planted fault."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from faults.answers import Verdict, compared, judged, judged_equal
from generated.faults import Planted
from generated.programs import as_json, case_of
from generated.truth import truth_of
from hypothesis import note
from recorded.planted_cases import recorded


def check(plan: Planted, folder: Path) -> str:
    """Records a plan's programs and asserts that the answer is not wrong; returns fault and verdict."""
    runs = Path(tempfile.mkdtemp(dir=folder))
    try:
        return _checked(plan, runs)
    finally:
        shutil.rmtree(runs)


def _checked(plan: Planted, runs: Path) -> str:
    truth = truth_of(plan)
    note(f"{plan.fault}, and what is true: {truth}")
    note(f"a: {as_json(plan.a)}")
    note(f"b: {as_json(plan.b)}")
    a, a2, b = (recorded(case_of(one), (), runs) for one in (plan.a, harmless(plan.a), plan.b))
    sound, answer = compared(a, a2), compared(a, b)
    equal, verdict = judged_equal(sound, failing=False), judged(answer, truth)
    if plan.fault == "garbage" and answer.status == 0 and answer.said.get("uninitialised"):
        verdict = Verdict.RIGHT  # no result depends on it
    note(f"a and a2: {equal.value}: {sound.summary()}")
    note(f"a and b: {verdict.value}: {answer.summary()}")
    assert equal.good and (verdict.good or verdict is Verdict.UNCERTAIN)
    return f"{plan.fault}: {verdict.value}"


def harmless(program: Any) -> Any:
    """The program with its buffers at other addresses."""
    return msgspec.structs.replace(program, gap=program.gap + 16)
