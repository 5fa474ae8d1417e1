"""Graph passes are blamed only if ATen, in the dtypes of the graph that they left, gives something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
from judged_programs import values
from planted_kernels import Program, judgement, recorded
from test_fx_program import program

from tracing.analyze.judge.findings import Finding, OutputOff, Overwritten, PassesOff, WrongElements
from tracing.judge import graph_referee
from tracing.judge.contents import Content
from tracing.judge.fx.float64 import float64_verdicts
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.graph_cause import GraphCause, GraphResult
from tracing.judge.steps.graph_memory import GraphMemory
from tracing.judge.steps.judged_steps import JudgedSteps
from tracing.numerics.verdict import Judged
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text
from tracing.store.graph_file import Schedule

Graph = FxProgram
OFF = WrongElements("output 0", "buf0", "eq", 1, 1, (0,), False, True, 128.0, 64.0)


def moving(x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    y = (x @ w) * mean.clone()
    mean.lerp_(y.detach().mean(0), 0.1)
    return y.sin()


def test_a_forward_that_overwrites_what_it_saves_for_its_backward_is_found(
    device: Device, runs: Path
) -> None:
    def inputs() -> list[torch.Tensor]:
        return [values(5, 4, g=0), values(4, 4, g=1).requires_grad_(), values(4, g=2)]

    said = judgement(recorded(Program(moving, inputs, backward=True), runs, device))

    if not said.findings and torch.__version__ >= "2.14":
        pytest.skip("this torch copies what it saves")
    [finding] = said.findings
    assert isinstance(finding, Overwritten) and finding.by is not None
    assert "saves its input for the backward without a copy" in finding.cause


def cause(traced: Graph, lowered: Graph, inputs: tuple[torch.Tensor, ...]) -> Finding:
    given = {FxValue(name, 0): one for name, one in zip(traced.inputs, inputs, strict=True)}
    contents: object = None
    memory = GraphMemory(lowered, Schedule([], [], [], {}, {}), contents, {}, None)  # type: ignore[arg-type]
    ends = [graph.value(graph.outputs[0]["node"]) for graph in (traced, lowered)]
    result = GraphResult("output 0", "buf0", *ends, Content(""))
    return GraphCause(traced, given, JudgedSteps(0, memory), given).of(result, OFF)


def grouped_left(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y + y).eq(x + y + y)


def grouped_right(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x + y + y).eq(x + (y + y))


def test_a_graph_that_differs_in_float64_only_is_not_blamed() -> None:
    # 1e16 + 1 + 1 is not 1e16 + 2 in float64, and is in bfloat16
    x, y = torch.full((1,), 1e16, dtype=torch.bfloat16), torch.ones(1, dtype=torch.bfloat16)
    graphs = [program(one, x, y) for one in (grouped_left, grouped_right)]

    assert isinstance(cause(graphs[0], graphs[1], (x, y)), OutputOff)


def test_a_graph_that_computes_something_else_is_blamed_from_its_first_node() -> None:
    x, y = torch.ones(1), torch.ones(1)
    traced = program(lambda x, y: (x + y).sin().eq(y), x, y)
    lowered = program(lambda x, y: (x - y).sin().eq(x - y), x, y)
    finding = cause(traced, lowered, (x, y))

    assert isinstance(finding, PassesOff) and finding.first == "sin"


def largest(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return (y + y @ w).amax(dim=1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_comparison_of_values_that_only_aten_rounds_names_its_launch(
    dtype: torch.dtype, device: Device, runs: Path
) -> None:
    def inputs() -> list[torch.Tensor]:
        return [values(3, 10, 16, dt=dtype).requires_grad_(), values(16, 16, dt=dtype, g=1).requires_grad_()]

    said = judgement(recorded(Program(largest, inputs, backward=True), runs, device))
    [finding] = said.findings

    assert isinstance(finding, OutputOff) and finding.wrong.node == "eq"
    [rounded] = finding.rounded
    assert rounded.nodes == ("eq",) and "eq" in rounded.kernel
    assert [one.verdict for one in said.launches if one.launch == rounded.launch] == ["right"]
    text = "\n".join(judgement_text(said, ()))
    assert " is False, and should be True" in text and "distance" not in text


@pytest.mark.parametrize(
    ("roundings", "elements", "accused"),
    [(70.0, 1, False), (1000.0, 1, True), (70.0, 8, True), (60.0, 0, True)],
    ids=["few", "far", "many", "on average"],
)
def test_a_result_of_right_launches_at_the_limit_of_rounding_is_not_accused(
    roundings: float,
    elements: int,
    accused: bool,
    device: Device,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def farther(verdict: Judged) -> Judged:
        distance = replace(verdict.compiled, farthest=roundings, limit=64.0, elements=elements)
        return replace(verdict, verdict="compiled is off", compiled=distance, exact=2.0)

    def judged_farther(*given: Any) -> dict[FxValue, Judged]:
        return {value: farther(one) for value, one in float64_verdicts(*given).items()}

    monkeypatch.setattr(graph_referee, "float64_verdicts", judged_farther)
    said = judgement(recorded(Program(lambda x: (x.sin() @ x).cos(), lambda: [values(4, 4)]), runs, device))

    assert [type(one) for one in said.findings] == [OutputOff] * accused
    at_the_limit = [one for one in said.not_covered if "how the roundings of its launches add up" in one]
    assert (len(at_the_limit), said.status) == (not accused, accused)


def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(2).add_(y)
    return x.sum(0)


def without_the_write(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        node.replace_all_uses_with(node.args[1])
        graph.erase_node(node)


def flattened(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    steep = x * 3.0
    curved = torch.tanh(steep @ w)
    return curved.sum(dim=1) - x[:, 0]


def with_another_factor(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        node.args = (node.args[0], 3.5)


def test_the_line_of_changed_graph_passes_is_that_of_the_first_node_that_differs(
    device: Device, runs: Path
) -> None:
    def inputs() -> list[torch.Tensor]:
        return [values(4, 8, g=0), values(8, 8, g=1)]

    with inductor.patch(post_grad_custom_post_pass=with_another_factor):
        [finding] = judgement(recorded(Program(flattened, inputs), runs, device)).findings

    assert isinstance(finding, PassesOff) and finding.first == "mul"
    assert [line.code for line in finding.lines] == ["steep = x * 3.0"]


def without_the_scale(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        node.args = (node.args[0], 1.0 if isinstance(node.args[1], float) else node.args[1])


def test_graph_passes_that_change_what_is_made_of_random_numbers_are_found(
    device: Device, runs: Path
) -> None:
    def dropped(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x.sin(), 0.3) + x

    with inductor.patch(post_grad_custom_post_pass=without_the_scale):
        said = judgement(recorded(Program(dropped, lambda: [values(20, 30, g=0)]), runs, device))
    right = judgement(recorded(Program(dropped, lambda: [values(20, 30, g=0)]), runs, device))

    [finding] = said.findings
    assert isinstance(finding, PassesOff) and finding.first.startswith("mul")
    assert right.findings == () and right.any_right
    assert [one for one in right.not_covered if "by Dynamo's graph" not in one] == []


def test_a_write_to_an_input_that_graph_passes_lose_is_found(device: Device, runs: Path) -> None:
    def inputs() -> list[torch.Tensor]:
        return [values(4, 8, g=0), values(4, 8, g=1)]

    with inductor.patch(post_grad_custom_post_pass=without_the_write):
        said = judgement(recorded(Program(scaled, inputs), runs, device))
    right = judgement(recorded(Program(scaled, inputs), runs, device))

    [finding] = said.findings
    assert isinstance(finding, PassesOff) and finding.wrong.name == "input 0 afterwards"
    assert right.findings == () and right.any_right


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")
