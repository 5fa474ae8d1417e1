"""Long lines: an outcome has a line for each part, and few of many values are shown."""

from __future__ import annotations

import pytest

from tracing.report.compare.divergence import _values_text
from tracing.report.text import outcome_lines


def test_a_short_outcome_is_one_line() -> None:
    assert outcome_lines("passed: all 3 results agree; b is not compared") == [
        "passed: all 3 results agree; b is not compared"
    ]


def test_each_part_of_a_long_outcome_has_a_line() -> None:
    parts = ["differs: output: " + "far away " * 20, "lib::op writes x", "output[1] has no reference"]

    lines = outcome_lines("; ".join(parts))

    assert lines == [parts[0], "    lib::op writes x", "    output[1] has no reference"]


@pytest.mark.parametrize(("value", "shown"), [(2.0, 6), (1.6666666269302368, 2), ("x" * 300, 1)])
def test_values_that_differ_fit_a_line(value: object, shown: int) -> None:
    text = _values_text([(index, value, value) for index in range(64)])

    assert text.count(" | ") == shown and text.endswith(f", and {64 - shown} more")
