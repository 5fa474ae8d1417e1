"""A model with two backends: every result is compared, and one that only one backend has is a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tracing import ComparisonConfig, KernelDiffHarness
from tracing.numerics.diff_report import KernelDiffReport
from tracing.virtual_gpu import virtual_gpu

GraphModule = torch.fx.GraphModule


@dataclasses.dataclass
class Scores:
    hidden: torch.Tensor
    logits: torch.Tensor


class Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.calls += 1
        hidden = self.linear(x)
        return {"scores": Scores(hidden, hidden.relu()), "many": [hidden.sum(), (x.sin(), 3)]}


def changed(change: Callable[[GraphModule], Any]) -> Callable[..., Any]:
    """A backend of torch.compile that executes the graph after a change to it."""

    def faulty(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        changed = change(graph)
        return graph.forward if changed is None else changed

    return faulty


def replaced(before: object, after: object) -> Callable[[GraphModule], None]:
    def change(graph: GraphModule) -> None:
        for node in graph.graph.nodes:
            if node.target is before or node.target == before:
                node.target = after
        graph.recompile()

    return change


def outputs(change: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]) -> Callable[..., Any]:
    """A backend that changes what the graph returns."""
    return changed(lambda graph: lambda *args: change(list(graph.forward(*args))))


def compared(model: Callable[..., Any], *inputs: Any, **options: Any) -> KernelDiffReport:
    return KernelDiffHarness(model, inputs, **options).compare()


def failed(report: KernelDiffReport) -> list[str]:
    return [one.name for one in report.failed]


def test_two_backends_that_agree_pass_in_every_result() -> None:
    report = compared(Nested(), torch.rand(3, 8, requires_grad=True), test_backend="aot_eager")

    assert report.passed, report.summary()
    assert {
        "output['scores'].logits",
        "output['many'][1][0]",
        "output['many'][1][1]",
        "grad of linear.weight",
        "grad of input 0",
        "buffer calls",
    } <= {one.name for one in report.results}


def test_the_model_and_its_inputs_stay_as_they_are() -> None:
    model, x = Nested(), torch.rand(3, 8, requires_grad=True)

    compared(model, x, test_backend="aot_eager")

    assert float(model.get_buffer("calls")) == 0
    assert x.grad is None and model.linear.weight.grad is None


def test_an_operator_that_a_backend_changes_is_named_with_its_gradients() -> None:
    report = compared(
        Nested(), torch.rand(3, 8, requires_grad=True), test_backend=changed(replaced("sin", "cos"))
    )

    assert failed(report) == ["output['many'][1][0]", "grad of input 0"]
    assert "worst" in report.summary()


def test_only_a_mutated_input_is_wrong() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x.sum()

    def unwritten(graph: GraphModule) -> None:
        replaced("add_", "add")(graph)

    report = compared(lambda x: fn(x) * 0, torch.rand(4), test_backend=changed(unwritten), backward=False)

    assert failed(report) == ["input 0 afterwards"]


def test_an_output_of_other_strides_differs_although_its_elements_agree() -> None:
    report = compared(
        lambda x: x + 1,
        torch.rand(4, 4),
        test_backend=outputs(lambda given: [given[0].t().contiguous().t()]),
        backward=False,
    )

    assert [one.problem for one in report.failed] == ["strides (1, 4) instead of (4, 1)"]


def test_an_output_that_is_an_input_instead_of_a_copy_differs() -> None:
    def faulty(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return lambda x: (x,)

    report = compared(lambda x: x.clone(), torch.rand(4), test_backend=faulty, backward=False)

    assert failed(report) == ["storage of output"]


@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (lambda x: (x + 1, x + 2) if torch.compiler.is_compiling() else (x + 1,), "extra"),
        (lambda x: (x + 1,) if torch.compiler.is_compiling() else (x + 1, x + 2), "missing"),
    ],
)
def test_a_result_that_one_backend_lacks_is_a_difference(fn: Callable[..., Any], problem: str) -> None:
    report = compared(fn, torch.rand(4), test_backend="eager_noexcept", backward=False)

    assert [(one.name, one.problem) for one in report.failed] == [("output[1]", problem)]


def test_the_types_of_containers_count_unless_they_are_flattened() -> None:
    def fn(x: torch.Tensor) -> Any:
        return [x + 1] if torch.compiler.is_compiling() else (x + 1,)

    options: dict[str, Any] = {"test_backend": "aot_eager", "backward": False}
    exact = compared(fn, torch.rand(4), comparison_config=ComparisonConfig(flatten_lists=False), **options)

    assert compared(fn, torch.rand(4), **options).passed
    assert [(one.name, one.problem) for one in exact.failed] == [
        ("output", "list of 1 instead of tuple of 1")
    ]


def test_a_number_that_differs_is_named_with_both_values() -> None:
    report = compared(
        lambda x: (x + 1, 2 if torch.compiler.is_compiling() else 3),
        torch.rand(4),
        test_backend="eager_noexcept",
        backward=False,
    )

    assert [(one.name, one.problem) for one in report.failed] == [("output[1]", "2 instead of 3")]


def test_both_backends_draw_the_same_random_numbers() -> None:
    assert compared(torch.nn.Dropout(0.5), torch.rand(64), test_backend="aot_eager").passed


def test_a_model_without_a_result_does_not_pass() -> None:
    report = compared(lambda: None, test_backend="aot_eager")

    assert not report.passed
    assert "there is no result to compare" in report.summary()


def test_what_differs_is_plotted_as_png(tmp_path: Path) -> None:
    harness = KernelDiffHarness(
        torch.sin, (torch.rand(8, 8),), model_name="a/b", test_backend=outputs(lambda given: [given[0] + 1])
    )

    (plot,) = harness.compare(generate_visualizations=True, folder=tmp_path).plots

    assert plot == tmp_path / "a-b-output.png"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_report_as_plain_values_has_no_number_that_json_lacks() -> None:
    report = compared(
        lambda x: x + 1, torch.rand(2, 2), test_backend=outputs(lambda given: [given[0] / 0]), backward=False
    )

    (result,) = (one for one in report.json()["results"] if one["name"] == "output")
    assert (result["max_absolute_error"], result["worst"]["actual"]) == ("inf", "inf")


def test_results_that_depend_on_random_numbers_are_named() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.nn.functional.dropout(x, 0.5), x * 2

    with virtual_gpu():
        report = KernelDiffHarness(model, (torch.ones(64),), backward=False).compare()

    assert [one.name for one in report.failed] == ["output[0]"]
    assert report.drawn == ("output[0]",) == tuple(report.json()["drawn"])
    assert "depend on random numbers, which backends draw otherwise: output[0]\n" in report.summary()
