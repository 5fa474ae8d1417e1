"""Random kernels, programs together and one at a time: equal bytes, errors and recorded accesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated import kernels

from tracing import interpreter


@pytest.mark.timeout(3600)
def test_two_thousand_random_kernels_do_the_same(tmp_path: Path) -> None:
    for seed in range(1000, 3000):
        kernel = kernels.kernel_of(seed, tmp_path)
        together, single = kernels.launched_twice(kernel, seed)
        interpreter.forget()

        assert together == single, f"seed {seed}:\n{kernels.source_of(seed)}"
