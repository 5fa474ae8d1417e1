"""A run as text: a heading that says how to look at one of many launches."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.records import arg, launch
from handmade.runs import saved

from tracing.analyze.passes.compilations import compilation
from tracing.errors import Problem
from tracing.report.run import SCREEN, run_text, summary_text


@pytest.mark.parametrize("more", [0, 1])
def test_the_heading_of_a_long_listing_says_how_to_see_one_launch(more: int, tmp_path: Path) -> None:
    count = SCREEN + more
    run = saved(tmp_path, [launch(index, arg("x", "in", "a")) for index in range(count)])
    said = f"launches  {count}; one in full: `tracing show {run.path} --launch 0`"

    lines = list(map(str, run_text(run)))

    assert (said in lines) == bool(more)
    assert not more or lines.index(said) < next(at for at, line in enumerate(lines) if "#0 " in line)


@pytest.mark.parametrize(
    ("argv", "by"),
    [
        (("/venv/bin/tracing", "guards", "f.py"), "guards"),
        (("/x/tracing/__main__.py", "repeat", "f.py"), "repeat"),
        (("/venv/bin/tracing", "run", "f.py"), ""),
        (("train.py", "guards"), ""),
    ],
)
def test_the_command_that_made_a_run_is_named_unless_it_is_run(
    argv: tuple[str, ...], by: str, tmp_path: Path
) -> None:
    run = saved(tmp_path, [], argv=argv)

    with pytest.raises(Problem) as raised:
        compilation(run)

    assert summary_text(run).endswith(f"  by {by}") if by else "  by " not in summary_text(run)
    assert (f"has no compiler passes: `tracing {by}` made it" in raised.value.problem) is bool(by)
