"""Which launch a divergence accuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_runs import saved
from records import arg, launch

from tracing import store
from tracing.analyze.divergence import Divergence, Producer
from tracing.analyze.suspect import suspect
from tracing.errors import Problem

PRODUCER = Producer(1, "k", "out_ptr", ("out_ptr",))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[store.Run, store.Run]:
    """The second call of k has another number in the second run."""
    folder = tmp_path_factory.mktemp("runs")
    plain = [launch(index, arg("x", "in", "x"), name="k") for index in range(2)]
    other = [launch(0, arg("x", "in", "x")), *(launch(i, arg("x", "in", "x"), name="k") for i in (1, 2))]
    return saved(folder / "a", plain), saved(folder / "b", other)


def divergence(**fields: Any) -> Divergence:
    one = launch(7)
    return replace(Divergence("output", 0, 7, one.kernel_name, "x", "y", one, launch(9)), **fields)


@pytest.mark.parametrize(
    ("fields", "accused"),
    [
        ({"kind": "output"}, (7, 9)),
        ({"kind": "launch"}, (7, 9)),
        ({"kind": "input", "producer": PRODUCER}, (1, 2)),
    ],
)
def test_the_launch_that_made_the_difference_is_accused(
    fields: dict[str, Any], accused: tuple[int, int], runs: tuple[store.Run, store.Run]
) -> None:
    assert suspect(divergence(**fields), runs) == accused


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "input"}, "it comes from outside of Triton"),
        ({"kind": "input", "operator": "aten::mm"}, "aten::mm, which is no kernel of Triton"),
        ({"kind": "input", "producer": replace(PRODUCER, changed_in="b")}, "outside of Triton"),
        (
            {"kind": "input", "producer": replace(PRODUCER, only_in_a=True)},
            "does not have the launch that wrote",
        ),
        ({"kind": "added", "other": None}, "does not have this launch"),
        ({"kind": "launch", "other": None}, "does not have this launch"),
    ],
)
def test_a_difference_that_no_kernel_made_accuses_none(
    fields: dict[str, Any], why: str, runs: tuple[store.Run, store.Run]
) -> None:
    with pytest.raises(Problem, match=why):
        suspect(divergence(**fields), runs)
