"""What a case's outcome says where compiled and eager differ: rounding, random numbers, or a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch._inductor.config as inductor
from commands import DATA
from records import INFO

from tracing import store
from tracing.model import Outcome
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.launches import LaunchRecorder
from tracing.record.run import record

aten = torch.ops.aten


def outcome(runs: Path, what: str, *, referee: bool = True) -> Outcome:
    device = Device("sm_90")
    experiment = Experiment(device.load(f"{DATA / 'refereed.py'}:what={what}"), device, 0, referee)
    writer = store.create(runs, INFO)
    return record(experiment, LaunchRecorder(writer), lambda stage: None, passes=None)


@contextmanager
def fault(change: Callable[[torch.fx.Node], None]) -> Iterator[None]:
    """A graph pass of Inductor's that is wrong."""

    def apply(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            change(node)

    with inductor.patch(post_grad_custom_post_pass=apply):
        yield


def another_constant(node: torch.fx.Node) -> None:
    if node.target == aten.mul.Tensor and isinstance(node.args[1], (int, float)):
        node.args = (node.args[0], node.args[1] * 1.001)


def another_function(node: torch.fx.Node) -> None:
    if node.target == aten.sin.default:
        node.target = aten.tanh.default


@pytest.mark.parametrize("what", ["attention", "embedding"])
def test_rounding_is_no_difference(what: str, tmp_path: Path) -> None:
    found = outcome(tmp_path, what)

    assert found.status == "passed", found.detail
    assert " within rounding, " in found.detail


def test_fixed_tolerances_take_the_same_rounding_for_a_difference(tmp_path: Path) -> None:
    assert outcome(tmp_path, "attention", referee=False).status == "differs"


def test_other_random_numbers_are_no_difference(tmp_path: Path) -> None:
    found = outcome(tmp_path, "dropout")

    assert found.status == "passed", found.detail
    assert "other random numbers than eager's in output, grad of input 0" in found.detail


def test_a_wrong_constant_is_found_behind_other_random_numbers(tmp_path: Path) -> None:
    with fault(another_constant):
        found = outcome(tmp_path, "dropout")

    assert found.status == "differs"
    assert "compiled is off" in found.detail


def test_a_mutated_input_is_judged_like_a_result(tmp_path: Path) -> None:
    with fault(another_function):
        found = outcome(tmp_path, "mutated")

    assert found.status == "differs"
    assert found.detail.startswith("input 1 afterwards: compiled is off: [")
    assert "where exact arithmetic gives" in found.detail


def test_a_case_that_keeps_state_has_no_reference(tmp_path: Path) -> None:
    device = Device("sm_90")
    experiment = Experiment(device.load(str(DATA / "leaking.py")), device, 0)
    writer = store.create(tmp_path, INFO)

    found = record(experiment, LaunchRecorder(writer), lambda stage: None, passes=None)

    assert found.status == "differs"
    assert (
        "output has no reference, because of eager itself: repeated, it gives another result" in found.detail
    )


def test_where_all_bits_are_equal_nothing_runs_in_float64(tmp_path: Path) -> None:
    found = outcome(tmp_path, "integers")

    assert found == Outcome("passed", "the result agrees with eager")
