"""What is printed of the IR that was executed between passes."""

from __future__ import annotations

import pytest

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.search import Step
from tracing.report.bisect.bisect import meaning_text


@pytest.mark.parametrize(
    ("meaning", "text"),
    [
        (Meaning(), []),
        (Meaning(why="tt.dot_scaled"), ["not executed on generated inputs: tt.dot_scaled"]),
        (
            Meaning((Step(2, "lower"),), "x[0] is 1"),
            ["executed on generated inputs, the IR first computes other values with lower (#2): x[0] is 1"],
        ),
    ],
)
def test_the_execution_of_the_ir_is_one_line(meaning: Meaning, text: list[str]) -> None:
    assert [str(line) for line in meaning_text(meaning)] == text
