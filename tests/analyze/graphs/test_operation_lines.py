"""A launch of compiled code is named by the line of its operation, and never by a decorator."""

from __future__ import annotations

from pathlib import Path

import torch
from handmade.records import INFO

from tracing import store
from tracing.analyze.graphs.operation_lines import at_operations
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


@torch.compile
def decorated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return y.sigmoid() * 3


class Layer:
    @torch.compile(
        dynamic=False,
    )
    @torch.no_grad()
    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos() + 5


def nested(x: torch.Tensor) -> torch.Tensor:
    @torch.compile
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.exp() * 7

    return inner(x)


def plain(x: torch.Tensor) -> torch.Tensor:
    return x.tanh() - 11


def test_each_shape_of_compiled_function_is_named_by_its_operation(tmp_path: Path) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    x = torch.rand(64, 64)
    with virtual_gpu(), LaunchRecorder(writer):
        decorated(x, x)
        Layer().method(x)
        nested(x)
        torch.compile(plain)(x)
        torch.compile(lambda x: x.abs() * 13)(x)
    writer.close()
    run = store.Run(writer.path)
    (process,) = run.processes()
    text = Path(__file__).read_text().splitlines()

    sites = [one.site for one in map(at_operations(run, process), run.launches())]
    lines = [text[one.line - 1].strip() for one in sites if one is not None]

    assert lines == [
        "return y.sigmoid() * 3",
        "return x.cos() + 5",
        "return x.exp() * 7",
        "return x.tanh() - 11",
        "torch.compile(lambda x: x.abs() * 13)(x)",
    ]


def test_without_a_graph_the_compiled_function_is_named_by_its_def(tmp_path: Path) -> None:
    torch.compiler.reset()
    writer = store.create(tmp_path, INFO)
    with virtual_gpu(), LaunchRecorder(writer):
        decorated(torch.rand(64, 64), torch.rand(64, 64))
    writer.close()

    (launch,) = store.Run(writer.path).launches()

    assert launch.site is not None and launch.site.function == "decorated"
    assert Path(__file__).read_text().splitlines()[launch.site.line - 1].startswith("def decorated(")
