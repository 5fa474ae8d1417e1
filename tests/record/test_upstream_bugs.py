"""Two wrong programs of upstream threads; the others are in tests/soak."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA
from recorded.runs import recorded

from tracing.model import Outcome


@pytest.mark.parametrize(
    ("case", "says"),
    [
        pytest.param(
            "pytorch_198131.py",
            "input 0 afterwards: compiled is off",
            marks=pytest.mark.skipif(torch.__version__ >= "2.15", reason="torch 2.15 has mended it"),
        ),
        ("pytorch_198081.py", "compiled gives torch.int64, eager gives torch.uint8"),
    ],
)
def test_a_wrong_program_is_seen_to_be_wrong(case: str, says: str, tmp_path: Path) -> None:
    (outcome,) = recorded(DATA / "upstream" / case, tmp_path).records(Outcome)

    assert outcome.status == "differs"
    assert says in outcome.detail
