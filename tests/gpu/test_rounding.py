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
