"""The options that select steps: what they mean, and which are refused before anything is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracing
from tracing.analyze.runs.recorded_steps import options_of
from tracing.errors import Problem
from tracing.model import StepSelection
from tracing.record.step_selection import step_selection

NOTHING: dict[str, Any] = {
    "last": None, "every": 1, "steps": ":", "until": "", "disk": None,
    "digests": "all", "shared_tensors": False,
}  # fmt: skip


@pytest.mark.parametrize("steps", [":", "3:", ":9", "2:9", "0:1"])
@pytest.mark.parametrize("every", [1, 3])
def test_steps_are_those_of_a_python_slice(steps: str, every: int) -> None:
    selection = step_selection(**NOTHING | {"steps": steps, "every": every})

    start, stop = (int(one) if one else None for one in steps.split(":"))
    assert [step for step in range(20) if selection.wants(step)] == list(range(20))[start:stop:every]


def test_the_options_are_shown_as_they_are_typed() -> None:
    selection = StepSelection(50, 10, 3, None, "nan", 2_000_000_000)

    assert options_of(selection) == [
        "--last", "50", "--every", "10", "--steps", "3:", "--until", "nan", "--disk", "2000000000",
    ]  # fmt: skip
    assert not options_of(StepSelection()) and not StepSelection().partial


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"last": 0}, "--last 0 keeps no step"),
        ({"every": 0}, "--every 0 is no number of steps"),
        ({"steps": "5:5"}, "--steps 5:5 selects no step"),
        ({"steps": "-5:"}, "'-5:' is not a range of steps"),
        ({"steps": "7"}, "'7' is not a range of steps"),
        ({"last": "2"}, "last='2'.: '2' is not of type int or None"),
        ({"disk": "8MiB"}, "disk='8MiB'.: '8MiB' is not of type int or None"),
        ({"steps": 3}, "steps=3.: 3 is not of type str"),
        ({"until": "NaN"}, "'NaN' is not one of '', 'nan', 'inf', 'any'"),
        ({"until": "nan", "digests": "none"}, "--until nan reads digests, and none are recorded"),
        ({"disk": 1000}, "--disk 1000 bytes has no room for kernels and their IR"),
        ({"last": 3, "rank_aware": True, "keep_inputs": True}, "^--last 3 would delete kept tensors, which"),
        ({"disk": 9 << 20, "rank_aware": True, "keep_outputs": True}, "^--disk 9437184 would delete kept"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any], what: str) -> None:
    with pytest.raises(Problem, match=what), tracing.recording(runs=tmp_path, **options):
        pass

    assert not list(tmp_path.iterdir())
