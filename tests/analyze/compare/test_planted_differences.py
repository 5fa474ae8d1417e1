"""`tracing compare --json` accuses a dozen of the planted differences; `make soak` plants all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.truths import CLASSES, Difference, differences
from planted_differences import examined, left
from recorded.planted_cases import Recordings

DOZEN = {
    "bounds-store",
    "chains-inserted",
    "configurations-warps",
    "garbage-read",
    "idlers-idle_scalar",
    "loops-poked",
    "optimizers-rate",
    "orders-dependent",
    "outcomes-message",
    "results-dtype",
    "scalars-infinity",
    "slices-poked",
    "sources-constant",
    "threads-plain",
}
PLANTED = differences()
CHOSEN = [difference for difference in PLANTED if difference.id in DOZEN]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(tmp_path_factory.mktemp("runs"))


def test_every_class_of_differences_has_a_planted_example() -> None:
    assert {difference.group for difference in PLANTED} == set(CLASSES)
    assert len({difference.id for difference in PLANTED}) == len(PLANTED) > 60
    assert {difference.id for difference in CHOSEN} == DOZEN


@pytest.mark.parametrize("difference", CHOSEN, ids=lambda difference: difference.id)
def test_a_planted_difference_changes_the_results_of_the_case(difference: Difference, tmp_path: Path) -> None:
    a, a2, b = left(difference, tmp_path)

    assert a == a2
    assert (a != b) == (difference.truth.differs and not difference.truth.hidden)


@pytest.mark.parametrize("difference", CHOSEN, ids=lambda difference: difference.id)
def test_compare_accuses_the_planted_difference(difference: Difference, recordings: Recordings) -> None:
    row = examined(difference, recordings)

    print(row)
    assert row.good
