"""`tracing compare` accuses the planted fault of 2,000 random programs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from faults.answers import Verdict
from generated.check import check
from generated.faults import FAULTS, Planted, planted
from hypothesis import HealthCheck, given, settings

SEEN: Counter[str] = Counter()


@pytest.mark.timeout(7200)
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=planted())
def test_a_planted_fault_is_accused_and_nothing_else(
    plan: Planted, tmp_path_factory: pytest.TempPathFactory
) -> None:
    SEEN[check(plan, Path(tmp_path_factory.getbasetemp()))] += 1


def test_each_kind_of_fault_was_planted() -> None:
    for seen, number in sorted(SEEN.items()):
        print(f"{number:5d}  {seen}")
    if not SEEN:
        pytest.skip("no program was compared")
    assert {seen.partition(":")[0] for seen in SEEN} == set(FAULTS)
    uncertain = sum(number for seen, number in SEEN.items() if seen.endswith(Verdict.UNCERTAIN.value))
    assert uncertain <= 0.01 * SEEN.total()
