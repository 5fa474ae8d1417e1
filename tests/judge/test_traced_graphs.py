"""What torch.compile does before Inductor's post-grad passes is judged by the graphs that Dynamo traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from judged_programs import values
from planted_kernels import Program, judgement, planted, recorded, traced
from torch._inductor.decomposition import select_decomp_table

from tracing.analyze.judge.findings import BEFORE_INDUCTOR, SharedResult, TracedOff
from tracing.judge.contents import Contents
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.traced.judged_call import JudgedCall
from tracing.judge.traced.traced_executions import TracedExecution
from tracing.judge.traced.traced_program import TracedProgram
from tracing.judge.traced.traced_referee import TracedReferee
from tracing.model import GraphCall, TracedCall, TracedGraph
from tracing.numerics.default_dtype import with_default_dtype
from tracing.program.device import Device
from tracing.report.judge.judgement import judgement_text
from tracing.store.graph_file import FxGraph, encoded, read_graph

CPU = torch.device("cpu")
aten = torch.ops.aten


def inputs() -> list[torch.Tensor]:
    return [values(6, 4, g=0), values(6, 4, g=1)]


def softer(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return F.hardswish(x) * y, y.sin()


def test_a_wrong_decomposition_is_off_by_dynamos_graph(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = select_decomp_table()
    monkeypatch.setitem(table, aten.hardswish.default, lambda x: x * (x + 3).clamp(0, 6) / 5)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(softer, inputs), tmp_path, device))

    assert {one.verdict for one in said.launches} == {"right"} and said.status == 1
    [finding] = said.findings
    assert isinstance(finding, TracedOff) and finding.wrong.name == "output 0"
    assert [line.code for line in finding.lines] == ["return F.hardswish(x) * y, y.sin()"]
    text = "\n".join(judgement_text(said, ()))
    assert "✗ output 0 is not what the graph that Dynamo traced computes" in text
    hardswish = "the decomposition of torch.nn.functional.hardswish"
    suspect = f"a pre-grad or joint pass, {hardswish} or another step of AOTAutograd"
    assert f"suspect   {suspect}: the run did not record" in text


def in_turn(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first = F.hardswish(x)
    return (first * y).sin(), y.cos(), first


def test_the_output_next_to_the_cause_is_first(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(select_decomp_table(), aten.hardswish.default, lambda x: x * (x + 3).clamp(0, 6) / 5)
    with inductor.patch(force_disable_caches=True):
        said = judgement(recorded(Program(in_turn, inputs), tmp_path, device))

    names = [one.wrong.name for one in said.findings if isinstance(one, TracedOff)]
    assert names == ["output 2", "output 0"]
    assert [one for one in judgement_text(said, ()) if "also off" in one] == ["    also off  output 0"]


def test_of_a_graph_with_a_wrong_launch_further_faults_are_not_covered(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(select_decomp_table(), aten.hardswish.default, lambda x: x * (x + 3).clamp(0, 6) / 5)
    with (
        inductor.patch(force_disable_caches=True),
        planted(lambda _, source: source.replace(".sin(", ".cos(")),
    ):
        said = judgement(recorded(Program(softer, inputs), tmp_path, device))

    assert "off" in {one.verdict for one in said.launches} and not said.findings
    [line] = said.not_covered
    assert line.startswith("graph passes and earlier steps of graph 0. Judge a new run ")


def with_cos(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.sin.default):
        node.target = aten.cos.default


def with_cosine(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if node.op == "call_method" and node.target == "sin":
            node.target = "cos"


@pytest.mark.parametrize(
    "planted", [{"joint_custom_post_pass": with_cos}, {"pre_grad_custom_pass": with_cosine}]
)
def test_a_wrong_pass_before_inductor_is_found(
    planted: dict[str, Any], device: Device, tmp_path: Path
) -> None:
    with inductor.patch({**planted, "force_disable_caches": True}):
        said = judgement(recorded(Program(softer, inputs), tmp_path, device))

    assert [one.wrong.name for one in said.findings if isinstance(one, TracedOff)] == ["output 1"]


def copied(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.clone(), (x + y).sin()


def without_clones(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.clone.default):
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)


def test_a_result_that_a_joint_pass_makes_the_input_itself_is_found(device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=without_clones, force_disable_caches=True):
        said = judgement(recorded(Program(copied, inputs), tmp_path, device))
    right = judgement(recorded(Program(copied, inputs), tmp_path, device))

    [finding] = said.findings
    assert isinstance(finding, SharedResult) and finding.cause == BEFORE_INDUCTOR
    assert (finding.result, finding.other) == ("output 0", "input 0")
    assert right.findings == ()


def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x[1:, 0] += y.sum()
    x[[0, 2]] *= 3
    return x[..., None, 1] + y[:, 1:2]


def with_another_factor(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.mul.Tensor):
        node.args = (node.args[0], 4)


def test_an_input_that_a_graph_overwrites_is_judged_as_it_is_left(device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=with_another_factor, force_disable_caches=True):
        said = judgement(recorded(Program(added, inputs), tmp_path, device))
    right = judgement(recorded(Program(added, inputs), tmp_path, device))

    names = {one.wrong.name for one in said.findings if isinstance(one, TracedOff)}
    assert names == {"output 0", "input 0 afterwards"}
    assert (right.findings, right.not_covered) == ((), ())


def with_a_write(graph: torch.fx.Graph) -> None:
    [first, *_] = graph.find_nodes(op="placeholder")
    with graph.inserting_before(next(iter(graph.find_nodes(op="output")))):
        doubled = graph.call_function(aten.mul.Tensor, (first, 2))
        doubled.meta = {**first.meta}
        graph.call_function(aten.copy_.default, (first, doubled)).meta = {**first.meta}


def test_a_write_that_a_joint_pass_adds_is_found(device: Device, tmp_path: Path) -> None:
    with inductor.patch(joint_custom_post_pass=with_a_write, force_disable_caches=True):
        said = judgement(recorded(Program(softer, inputs), tmp_path, device))

    [finding] = said.findings
    assert isinstance(finding, TracedOff) and finding.wrong.name == "input 0 afterwards"


def sized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.transpose(0, 1).contiguous() * x.shape[0] + y.mT.unflatten(0, (2, -1)).flatten(0, 1)


def vectorised(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.vmap(torch.dot)(x, y)


def in_less_precision(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return (x @ y.mT).relu()


def into_new_memory(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made = torch.empty_like(x).copy_(y)
    torch.add(x, y, out=(rows := x.new_empty(6, 4)))
    return made.sin() + rows


def checkpointed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.utils.checkpoint.checkpoint(lambda z: z.sin() * y, x, use_reentrant=False)
    return made


class Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return F.silu(x) * y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.empty_like(gradients[0]), gradients[0]


def differentiated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = Gated.apply(x.data.requires_grad_(), y)
    return made + y.data


@pytest.mark.parametrize(
    "function", [sized, vectorised, in_less_precision, into_new_memory, checkpointed, differentiated]
)
def test_a_right_program_is_right(function: Callable[..., Any], device: Device, tmp_path: Path) -> None:
    dynamic = True if function is sized else None
    said = judgement(recorded(Program(function, inputs, dynamic=dynamic, calls=2), tmp_path, device))

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def test_the_settings_around_a_call_are_those_of_the_program(device: Device, tmp_path: Path) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run = recorded(Program(lambda x, y: (x @ y.mT).relu(), inputs), tmp_path, device)
    [call] = run.records(TracedCall)
    said = judgement(run)

    assert call.autocast == {"cpu": "bfloat16"}
    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def test_an_input_of_inference_mode_is_judged_as_it_is_left(device: Device, tmp_path: Path) -> None:
    with torch.inference_mode():
        run = recorded(Program(lambda x, y: x.mul_(2) + y, inputs), tmp_path, device)
    said = judgement(run)

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def written(graph: torch.fx.Graph) -> None:
    first, *_, last = graph.nodes
    with graph.inserting_before(last):
        graph.call_method("add_", (first, 1))


def test_a_pass_that_overwrites_an_input_is_found(device: Device, tmp_path: Path) -> None:
    with inductor.patch(pre_grad_custom_pass=written, force_disable_caches=True):
        said = judgement(recorded(Program(softer, inputs), tmp_path, device))

    assert [one.wrong.name for one in said.findings if isinstance(one, TracedOff)] == ["input 0 afterwards"]


def of_numbers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    steps = torch.arange(4, device=x.device)
    return x * torch.linspace(0, 1, 4, device=x.device), steps / 3, steps * 0.1 * y


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_the_default_dtype_is_that_of_the_program(dtype: torch.dtype, device: Device, tmp_path: Path) -> None:
    with with_default_dtype(str(dtype).removeprefix("torch.")):
        run = recorded(Program(of_numbers, inputs), tmp_path, device)
    said = judgement(run)

    assert {one.verdict for one in said.launches} == {"right"}
    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def test_an_expanded_input_may_overlap_another_one(device: Device, tmp_path: Path) -> None:
    def views() -> list[torch.Tensor]:
        base = values(4, 4)
        return [base[:1].expand(4, 4), base]

    said = judgement(recorded(Program(lambda x, y: x + y.mul_(2), views), tmp_path, device))

    assert (said.status, said.findings, said.not_covered) == (0, (), ())


def doubled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.mul_(2) + y


def with_three(graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=aten.mul.Tensor):
        node.args = (node.args[0], 3)


def test_inputs_that_share_memory_are_judged(device: Device, tmp_path: Path) -> None:
    def overlapping() -> list[torch.Tensor]:
        base = values(12, g=0)
        return [base[:8], base[4:]]

    right = judgement(recorded(Program(doubled, overlapping), tmp_path, device))
    with inductor.patch(joint_custom_post_pass=with_three, force_disable_caches=True):
        said = judgement(recorded(Program(doubled, overlapping), tmp_path, device))

    assert (right.status, right.findings, right.not_covered) == (0, (), ())
    names = [one.wrong.name for one in said.findings if isinstance(one, TracedOff)]
    assert names == ["output 0", "input 0 afterwards", "input 1 afterwards"]


@pytest.mark.usefixtures("no_geometric_numbers")
@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (
            lambda x, y: torch.empty_like(x).geometric_(0.5) + y,
            inputs,
            "the random numbers of aten::geometric_",
        ),
        (lambda x, y: (x.new_empty(3) + 1, x * y), inputs, "unwritten memory"),
        (torch.add, lambda: [(base := values(12))[:8], base[4:].view(torch.int32)], "several dtypes"),
    ],
)
def test_what_cannot_be_judged_is_not_covered(
    function: Callable[..., Any],
    arguments: Callable[[], Sequence[torch.Tensor]],
    reason: str,
    device: Device,
    tmp_path: Path,
) -> None:
    said = judgement(recorded(Program(function, arguments), tmp_path, device))

    assert said.findings == () and said.status == 0
    texts = [one for one in said.not_covered if "by Dynamo's graph: no reference" in one]
    assert len(texts) == 1 and reason in texts[0]


def drawn_in_less_precision(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    before = x @ y.mT
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return before, torch.empty_like(x @ y.mT).geometric_(0.5)


@pytest.mark.usefixtures("no_geometric_numbers")
def test_a_graph_that_raises_leaves_autocast(device: Device, tmp_path: Path) -> None:
    said = judgement(recorded(Program(drawn_in_less_precision, inputs), tmp_path, device))

    assert (said.status, said.findings) == (0, ())
    [text] = [one for one in said.not_covered if "by Dynamo's graph: no reference" in one]
    assert text.startswith("output 1 of graph 0") and "the random numbers of aten::geometric_" in text
    assert not torch.is_autocast_enabled("cpu")


def test_after_the_recording_no_call_is_recorded(device: Device, tmp_path: Path) -> None:
    compiled = torch.compile(lambda x, y: x + y)
    run = recorded(Program(torch.compiler.disable(compiled), inputs), tmp_path, device)
    before = len([*run.records(TracedCall)])
    compiled(*inputs())

    assert before == len([*run.records(TracedCall)]) == 1


def test_a_graph_is_executed_on_copies_of_its_inputs() -> None:
    x, y = inputs()
    before = x.clone()
    program = TracedProgram(traced(added, x.clone(), y), CPU)

    made = program.run([x, y], {})

    assert torch.equal(x, before) and made.changed == (0,)
    assert torch.equal(made.results[0], added(before, y)) and torch.equal(made.inputs[0], before)


def test_a_damaged_graph_is_not_covered(device: Device, tmp_path: Path) -> None:
    run = recorded(Program(softer, inputs), tmp_path, device)
    [traced_graph] = run.records(TracedGraph)
    [call] = run.records(TracedCall)
    contents = Contents.of(run, run.processes()[0], CPU)
    referee = TracedReferee(run, run.processes()[0], contents)
    nodes = read_graph(run, traced_graph.nodes).nodes
    lost = FxGraph([one for one in nodes if one.name != nodes[-2].name])

    with pytest.raises(NoReference, match="does not run by itself"):
        JudgedCall(call, 0, TracedProgram(lost, CPU), contents, ()).findings()
    unknown_call = msgspec.structs.replace(call, graph=7)
    unknown = referee.judge(TracedExecution(unknown_call, call.index, [*run.records(GraphCall)], 0), ())
    assert unknown.off == () and "a graph that was not recorded" in unknown.not_covered[0]


def test_a_function_that_opens_a_file_is_not_executed() -> None:
    graph = traced(lambda x: x.sin(), torch.ones(3))
    damaged = encoded(graph).replace(b'"call_method"', b'"call_function"').replace(b'"sin"', b'"torch.load"')
    with pytest.raises(NoReference, match="load, which judge does not execute"):
        TracedProgram(msgspec.json.decode(damaged, type=FxGraph), CPU)


def test_an_error_of_some_percent_in_every_element_is_off(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    softmax = select_decomp_table()[aten._softmax.default]
    monkeypatch.setitem(select_decomp_table(), aten._softmax.default, lambda *args: softmax(*args) * 1.05)
    with inductor.patch(force_disable_caches=True):
        said = judgement(
            recorded(Program(lambda x: x.softmax(-1), lambda: [values(64, 32).bfloat16()]), tmp_path, device)
        )

    [finding] = said.findings
    assert isinstance(finding, TracedOff) and finding.wrong.count == 0
    text = "\n".join(judgement_text(said, ()))
    assert "2048 elements on average, and none by itself" in text
    assert "roundings on average; rounding explains 3" in text


def in_rows(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin().as_strided((2, 4), (4, 1), 1) * 2, torch.as_strided(x, (3,), (5,), 2) + 1


def test_what_as_strided_reads_of_a_value_or_of_a_whole_input_is_judged(
    device: Device, tmp_path: Path
) -> None:
    said = judgement(recorded(Program(in_rows, inputs), tmp_path, device))

    assert not said.findings and not said.not_covered


@pytest.mark.parametrize("columns", [slice(0, 2), slice(2, 4)], ids=["gaps", "offset"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_as_strided_reads_next_to_an_input_has_no_reference(
    dynamic: bool, columns: slice, device: Device, tmp_path: Path
) -> None:
    program = Program(in_rows, lambda: [values(6, 4)[:, columns], values(6, 4)], dynamic=dynamic)

    said = judgement(recorded(program, tmp_path, device))

    assert not said.findings and said.accused is None
    assert any("the storage of an input" in one for one in said.not_covered)
