"""Every kernel of the cases SiLU and FlexAttention, for each target, resumed before and after every pass.

    python -m pytest -s tests/benchmarks/test_resumable_kernels.py

On a GPU the case launches the kernels of FlexAttention's template; without one, those that replace them. All
are compiled for every target. Takes some ten minutes;
tests/analyze/passes/test_resumable_kernels.py checks a sample.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from data.kernels import TARGETS
from recorded import case_kernels

from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_table import passes_of


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", ["silu", "flex_attention"])
def test_every_kernel_is_recorded_as_it_is_and_resumed_from_everywhere(
    case: str, target: str, tmp_path: Path
) -> None:
    sources = case_kernels.sources(case, target)
    run = case_kernels.recorded(sources, target, tmp_path)
    kernels = compilations(run)
    passes = [passes_of(run, one) for one in kernels]

    other = case_kernels.not_identical(run, sources, target)
    tried = [case_kernels.not_resumed(run, one) for one in kernels]

    lost = [place for _, different in tried for place in different]
    changed = sum(one.changed for of in passes for one in of)
    print(f"\n{case} for {target}: {len(kernels)} kernels, {sum(map(len, passes))} passes, {changed} changed")
    print(f"  {len(kernels) - len(other)} identical; {other or 'no other'}")
    places = sum(number for number, _ in tried)
    print(f"  {places} resume points, {places - len(lost)} give the recorded text; {lost or 'no other'}")
    assert other == lost == []
