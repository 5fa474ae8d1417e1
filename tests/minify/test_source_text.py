"""Kernels of the program as text. tests/soak runs the scripts that have it."""

from __future__ import annotations

from typing import Any

import pytest
from commands import DATA

from tracing.minify.captured_graph import captured_graphs
from tracing.minify.kernel_call import kernel_call
from tracing.minify.source_text import SourceText
from tracing.program.device import Device
from tracing.program.experiment import Experiment


@pytest.fixture(scope="module")
def launcher() -> object:
    """A function that launches a kernel with two configurations, of which eager has taken the first."""
    device = Device("sm_90")
    case = device.load(f"{DATA / 'kernel_result.py'}:tuned=true")
    with device.active():
        (graph,) = captured_graphs(Experiment(case, device, 0))
    return next(node.target for node in graph.calls if kernel_call(node.target))


def text(launcher: object, *, interpreted: bool) -> str:
    source = SourceText(interpreted=interpreted)
    source.add("launch", launcher)
    assert source.missing == []
    assert source.definitions["times"].startswith("@triton.jit\ndef times(")
    assert source.definitions["scaled"].startswith("@triton.jit(do_not_specialize=['n'])\ndef scaled(")
    assert {"times", "scaled", "FACTOR", "launch"} <= {*source.definitions}
    return source.definitions["tuned_scaled"]


def test_an_autotuner_is_written_with_its_configurations_and_the_tensors_that_it_resets(
    launcher: object,
) -> None:
    written = text(launcher, interpreted=False)

    assert "triton.Config({'BLOCK': 8}, num_warps=1, num_stages=3, maxnreg=64)" in written
    assert "triton.Config({'BLOCK': 16}, num_warps=2, num_stages=3)" in written
    assert written.endswith("key=['n'], reset_to_zero=['out_ptr'])(scaled)")


def test_for_the_interpreter_which_measures_nothing_an_autotuner_has_the_chosen_configuration(
    launcher: object,
) -> None:
    written = text(launcher, interpreted=True)

    assert "{'BLOCK': 8}" in written and "{'BLOCK': 16}" not in written


def triple(x: int) -> int:
    return 3 * x


thrice = triple


def caller(x: int) -> int:
    return thrice(x) + 1


def test_a_function_that_is_called_by_another_name_is_written_with_both() -> None:
    source = SourceText()
    source.add("caller", caller)
    names: dict[str, Any] = {}
    exec("from __future__ import annotations\n" + "\n".join(source.definitions.values()), names)

    assert source.missing == [] and list(source.definitions) == ["triple", "thrice", "caller"]
    assert names["caller"](5) == 16


def test_a_name_of_two_objects_is_missing_since_a_script_has_only_one_of_them() -> None:
    source = SourceText()
    for value in (1e-5, 1e-5, 1e-6):
        source.add("EPS", value)

    assert source.missing == ["EPS, a name of two objects"]
