"""Which launch is named first, what kind of difference it has, and who is named as the producer."""

from __future__ import annotations

import pytest
from records import arg, launch

from tracing.analyze.divergence import Divergence, first_divergence
from tracing.model import KernelLaunch


def found(a: list[KernelLaunch], b: list[KernelLaunch]) -> Divergence:
    divergence = first_divergence(a, b)
    assert divergence is not None
    return divergence


def test_equal_runs_have_no_divergence() -> None:
    run = [launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", "y"))]

    assert first_divergence(run, run) is None


def test_a_kernel_with_equal_inputs_and_unequal_outputs_is_itself_to_blame() -> None:
    a, b = ([launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", y))] for y in ("y", "z"))

    divergence = found(a, b)

    assert (divergence.kind, divergence.argument, divergence.a, divergence.b) == (
        "output",
        "out_ptr0",
        "y",
        "z",
    )


def test_an_uninitialised_output_buffer_never_makes_two_runs_differ() -> None:
    a, b = ([launch(0, arg("out_ptr0", "out", garbage, "y"))] for garbage in ("before a", "before b"))

    assert first_divergence(a, b) is None


def test_a_buffer_rewritten_with_the_same_bits_is_still_an_output() -> None:
    a, b = ([launch(0, arg("out_ptr0", "out", y, y))] for y in ("y", "z"))

    assert found(a, b).kind == "output"


def test_an_argument_declared_as_input_but_seen_to_change_is_compared_as_an_output() -> None:
    a, b = ([launch(0, arg("in_ptr0", "in", "x", y))] for y in ("y", "z"))

    assert found(a, b).kind == "output"


def test_the_producer_is_the_launch_that_last_wrote_the_buffer_not_the_previous_one() -> None:
    def run(value: str) -> list[KernelLaunch]:
        writer = launch(0, arg("out_ptr0", "out", "old", "y", storage=7), name="writer")
        between = launch(1, arg("out_ptr0", "out", "old", "w", storage=8), name="between")
        return [writer, between, launch(2, arg("in_ptr0", "in", value, storage=7), name="reader")]

    producer = found(run("y"), run("changed by the host")).producer

    assert producer is not None
    assert (producer.index, producer.kernel_name, producer.argument, producer.intact) == (
        0,
        "writer",
        "out_ptr0",
        True,
    )


def test_a_producer_whose_result_was_changed_afterwards_is_marked_so() -> None:
    def run(value: str) -> list[KernelLaunch]:
        writer = launch(0, arg("out_ptr0", "out", "old", "y", storage=7))
        return [writer, launch(1, arg("in_ptr0", "in", value, storage=7))]

    producer = found(run("host a"), run("host b")).producer

    assert producer is not None
    assert not producer.intact


def test_an_input_that_no_launch_wrote_has_no_producer() -> None:
    divergence = found([launch(0, arg("in_ptr0", "in", "x"))], [launch(0, arg("in_ptr0", "in", "y"))])

    assert divergence.kind == "input"
    assert divergence.producer is None


@pytest.mark.parametrize(("change", "named"), [({"grid": 2}, "grid"), ({"num_warps": 8}, "num_warps")])
def test_another_configuration_is_reported_before_any_digest(change: dict[str, int], named: str) -> None:
    divergence = found([launch(0, arg("x", "in", "x"))], [launch(0, arg("x", "in", "y"), **change)])

    assert divergence.kind == "launch"
    assert named in divergence.a


def test_a_run_that_ends_early_is_a_divergence_where_it_ended() -> None:
    run = [launch(0, arg("x", "in", "x")), launch(1, arg("x", "in", "x"), name="last")]

    divergence = found(run, run[:1])

    assert (divergence.kind, divergence.index, divergence.kernel_name) == ("length", 1, "last")


def test_an_input_that_an_operator_wrote_last_names_the_operator() -> None:
    a, b = ([launch(0, arg("in_ptr0", "in", x, writer="aten::mm.out"))] for x in ("x", "y"))

    assert found(a, b).operator == "aten::mm.out"
