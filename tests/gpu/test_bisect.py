"""On a GPU: a recorded launch executed with other builds of its kernel, judged by the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA, recorded, tracing

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    runs = tmp_path_factory.mktemp("runs")
    return recorded(str(DATA / "untuned.py"), runs, "--keep-inputs", "--keep-outputs")


def test_a_kernel_that_computes_what_the_interpreter_does_is_good(run: str, tmp_path: Path) -> None:
    done = tracing("bisect", run, runs=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("full pipeline: good (out_ptr0 as expected)\n")


def test_a_difference_that_no_pass_makes_is_not_decided(run: str, tmp_path: Path) -> None:
    done = tracing("bisect", run, "--atol", "0", "--rtol", "0", runs=tmp_path)  # the GPU's exp2 is another

    print(done.stdout)
    assert done.returncode == 2, done.stderr
    assert "full pipeline: bad (out_ptr0: Tensor-likes are not equal!" in done.stdout
    assert "MLIR passes: cannot be decided" in done.stdout
