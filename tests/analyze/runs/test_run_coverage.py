"""Two runs can be compared in the launches that both recorded."""

from __future__ import annotations

import msgspec
import pytest
from handmade.records import INFO

from tracing.analyze.runs.coverage import coverage
from tracing.model import RunInfo, Selection


def info(**selection: object) -> RunInfo:
    return msgspec.structs.replace(INFO, selection=Selection(**selection))  # type: ignore[arg-type]


WHOLE = info()


@pytest.mark.parametrize(
    ("b", "covered"),
    [
        (WHOLE, True),
        (info(launches=(2, 5)), True),
        (info(launches=(4, 5)), False),
        (info(kernels=("add*", "mm")), True),
        (info(kernels=("mm",)), False),
        (info(phases=("backward",)), False),
        (info(ranks=(1,)), True),
        (info(ranks=(0,)), False),
    ],
)
def test_a_launch_is_covered_if_both_runs_recorded_it(b: RunInfo, covered: bool) -> None:
    for both in (coverage(WHOLE, b), coverage(b, WHOLE)):
        assert both.covers(3, "add", "forward", rank=1) == covered


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (WHOLE, WHOLE, ""),
        (
            WHOLE,
            info(launches=(2, 1 << 62)),
            "b was recorded with --launches 2:: what one of the runs left out is not compared",
        ),
        (
            info(kernels=("mm", "a*"), ranks=(1,)),
            info(phases=("backward",)),
            "a was recorded with --kernel mm --kernel 'a*' --rank 1, b was recorded with --phase backward: "
            "what one of the runs left out is not compared",
        ),
        (
            info(launches=(2, 5)),
            info(launches=(2, 5)),
            "both runs were recorded with --launches 2:5: the rest is not compared",
        ),
    ],
)
def test_launches_that_are_not_compared_are_reported(a: RunInfo, b: RunInfo, sentence: str) -> None:
    assert coverage(a, b).left_out == sentence
