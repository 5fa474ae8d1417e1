"""The differing elements of small tensors that both runs kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.runs import saved

from tracing.analyze.runs.element_values import differing_values
from tracing.model import Scalar, Values
from tracing.store import Run


def kept(folder: Path, *values: Scalar, launch: int = 0, rank: int = 0) -> Run:
    return saved(folder, [], [Values(launch, 1, "after", values)], rank=rank)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1.0, 2.0, 3.0), (1.0, 2.5, 4.0), [(1, 2.0, 2.5), (2, 3.0, 4.0)]),
        ((1.0, 2.0), (1.0, 2.0), []),
        (("nan", "inf"), ("nan", "-inf"), [(1, "inf", "-inf")]),
        ((0.0,), (-0.0,), [(0, 0.0, -0.0)]),
        ((1,), (True,), [(0, 1, True)]),
        ((1.0, 2.0), (1.0,), []),
    ],
)
def test_elements_differ_by_type_and_bits(
    a: tuple[Scalar, ...], b: tuple[Scalar, ...], expected: list[object], tmp_path: Path
) -> None:
    runs = kept(tmp_path / "a", *a), kept(tmp_path / "b", *b)

    values = differing_values(runs, 0, (0, 0), 1, "after")

    assert repr(values) == repr(expected)


def test_the_launch_may_have_another_index_in_each_run(tmp_path: Path) -> None:
    runs = kept(tmp_path / "a", 1.0, launch=2), kept(tmp_path / "b", 2.0, launch=3)

    assert differing_values(runs, 0, (2, 3), 1, "after") == [(0, 1.0, 2.0)]
    assert differing_values(runs, 0, (2, 2), 1, "after") == []


def test_values_that_one_run_did_not_keep_are_not_compared(tmp_path: Path) -> None:
    runs = kept(tmp_path / "a", 1.0), kept(tmp_path / "b", 2.0)

    assert differing_values(runs, 0, (0, 0), 0, "after") == []
    assert differing_values(runs, 0, (0, 0), 1, "before") == []
    assert differing_values(runs, 1, (0, 0), 1, "after") == []
