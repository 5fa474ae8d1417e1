"""Triton's tutorials, unchanged, recorded on a virtual GPU; they check their own results.

    TUTORIALS=CHECKOUT/python/tutorials python -m pytest tests/soak/test_tutorials.py

Without TUTORIALS it uses the checkout of `make venv SOURCE=1`. Minutes for each of 05, 06, 08, 09. The
tutorials of commit 48fb89c7b (June 2026), the nearest known to the 3.8.0 wheel, pass.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import tracing

from tracing import store
from tracing.model import Outcome

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
TUTORIALS = (
    "01-vector-add", "02-fused-softmax", "03-matrix-multiplication", "05-layer-norm", "06-fused-attention",
    "08-grouped-gemm", "09-persistent-matmul",
)  # fmt: skip


def folder() -> Path:
    """Where the tutorials are; skips where they are not."""
    named = os.environ.get("TUTORIALS")
    folders = [Path(named)] if named else sorted(ROOT.glob("toolchain/*/python/tutorials"))
    if not folders:
        pytest.skip(
            "no tutorials: `make venv SOURCE=1` brings Triton's source, or TUTORIALS names their folder"
        )
    return folders[-1]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_as_it_stands(name: str, target: str, tmp_path: Path) -> None:
    case = f"{HERE / 'tutorial_case.py'}:name={name}"

    done = tracing("run", case, "--target", target, runs=tmp_path, TUTORIALS=str(folder()))

    assert done.returncode == 0, done.stderr
    run = store.Run(Path(done.stdout.strip().splitlines()[-1]))
    (outcome,) = run.records(Outcome)
    assert outcome.status == "passed"
    assert sum(1 for _ in run.launches())
    assert "❌" not in done.stdout  # by which 03 and 09 say that a result is wrong


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
def test_a_tutorial_is_compiled_and_not_executed(target: str, tmp_path: Path) -> None:
    case = f"{HERE / 'tutorial_case.py'}:name=08-grouped-gemm"

    done = tracing("run", case, "--compile-only", "--target", target, runs=tmp_path, TUTORIALS=str(folder()))

    assert done.returncode == 0, done.stderr
    run = store.Run(Path(done.stdout.strip().splitlines()[-1]))
    assert [one.status for one in run.records(Outcome)] == ["compiled"]
    assert {"grouped_matmul_kernel"} <= {launch.kernel_name for launch in run.launches()}
