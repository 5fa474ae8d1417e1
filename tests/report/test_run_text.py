"""A run as text: a heading that says how to look at one of many launches."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import arg, launch
from handmade.runs import saved

from tracing.report.run import SCREEN, run_text


@pytest.mark.parametrize("more", [0, 1])
def test_the_heading_of_a_long_listing_says_how_to_see_one_launch(more: int, tmp_path: Path) -> None:
    count = SCREEN + more
    run = saved(tmp_path, [launch(index, arg("x", "in", "a")) for index in range(count)])
    said = f"launches  {count}; one in full: `tracing show {run.path} --launch N`"

    lines = list(map(str, run_text(run)))

    assert (said in lines) == bool(more)
    assert not more or lines.index(said) < next(at for at, line in enumerate(lines) if "#0 " in line)
