"""10,000 random graphs: right ones are never accused; planted faults beyond rounding always are."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "numerics"))

from test_rounding_verdict import explained, judged

from tracing.numerics.verdict import Judged

GRAPHS = 10_000


def is_right(one: Judged) -> bool:
    """True also if a number of the program itself overflows its dtype: then eager is infinite, too."""
    overflows = one.verdict == "both are off" and math.isinf(one.eager.value)
    return overflows or one.verdict in ("within rounding", "eager is off")


@pytest.mark.timeout(7200)
def test_no_right_graph_is_accused_and_planted_faults_are() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1_000_000, 1_000_000 + GRAPHS):
        right, fault = judged(seed)
        seen.update(f"right: {one.verdict}" for one in right)
        if fault is not None:
            seen[f"fault: {fault.verdict}"] += 1
            assert fault.verdict == "compiled is off" or explained(fault), seed
        assert all(map(is_right, right)), seed
    print(*(f"{number:7d}  {name}" for name, number in sorted(seen.items())), sep="\n")
