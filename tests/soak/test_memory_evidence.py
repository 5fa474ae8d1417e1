"""Correct programs of several kinds have no memory evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import DATA
from recorded.runs import recorded

from tracing.analyze.memory.evidence import memory_evidence


@pytest.mark.parametrize(
    "case",
    [
        "silu", "gated_mlp", DATA / "layer_norm.py", DATA / "pipeline.py", DATA / "autotuned.py",
        *(f"{DATA / 'evidence' / 'correct.py'}:name={name}"
          for name in ("rotary", "matmuls", "slices", "training")),
    ],
    ids=str,
)  # fmt: skip
def test_a_correct_program_has_no_memory_evidence(case: str | Path, tmp_path: Path) -> None:
    assert memory_evidence(recorded(case, tmp_path)) == []
