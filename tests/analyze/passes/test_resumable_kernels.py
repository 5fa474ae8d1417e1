"""Every kernel of the cases SiLU and FlexAttention is recorded completely, and can be resumed.

Checks a sample on every change; tests/benchmarks/test_resumable_kernels.py checks everything.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from data.kernels import TARGETS
from recorded import case_kernels

from tracing.analyze.passes.compilations import compilations
from tracing.store import Run

STEPS = {
    "silu": 1,
    "flex_attention": 30,
}  # a case's kernels are resumed from every n-th pass, and from the last one
PAIRS = [  # of case and target
    pytest.param(pair, id="-".join(pair), marks=[pytest.mark.soak] if n or case != "silu" else [])
    for case in STEPS
    for n, pair in enumerate(product([case], TARGETS))
]
sources = cache(case_kernels.sources)


@pytest.fixture(scope="module", params=PAIRS)
def compiled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, Run]:
    case, target = request.param
    return (
        case,
        target,
        case_kernels.recorded(sources(case, "sm_90"), target, tmp_path_factory.mktemp("runs")),
    )


def test_recorded_artefacts_equal_those_of_an_unrecorded_compile(compiled: tuple[str, str, Run]) -> None:
    case, target, run = compiled

    assert len(compilations(run)) > 1
    assert case_kernels.not_identical(run, sources(case, "sm_90"), target) == []


def test_from_the_ir_around_a_pass_the_recorded_kernel_is_compiled(compiled: tuple[str, str, Run]) -> None:
    case, _, run = compiled
    tried = [case_kernels.not_resumed(run, one, STEPS[case]) for one in compilations(run)]

    assert [different for _, different in tried] == [[]] * len(tried)
