"""On a GPU: results that differ from eager's only by rounding are no difference."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA, tracing

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("width", [32, 768])
@pytest.mark.parametrize("what", ["attention", "embedding"])
def test_rounding_is_no_difference(what: str, width: int, tmp_path: Path) -> None:
    case = f"{DATA / 'refereed.py'}:what={what},width={width}"

    done = tracing("run", case, "--no-passes", runs=tmp_path)

    assert (done.returncode, " within rounding" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize(("what", "status"), [("encoder", 0), ("probabilities", 2)])
def test_random_numbers_that_only_eager_draws_are_no_difference(
    what: str, status: int, tmp_path: Path
) -> None:
    done = tracing("run", f"{DATA / 'refereed.py'}:what={what}", "--no-passes", runs=tmp_path)

    said = " in a second compile, which" if status == 0 else "different random numbers: compiled draws rand"
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr
