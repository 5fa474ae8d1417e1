"""What GuardInspector reports of a program in its own process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tracing import GuardInspector
from tracing.guards.inspector import InspectedProgram
from tracing.model import CompiledFrame, FrameCompile, GraphBreak


@pytest.fixture(autouse=True)
def no_compiled_code() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        return x.sin() * n


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x - 1


def test_one_call_returns_guards_bytecode_and_graph_of_the_program_that_it_is_given() -> None:
    scaled = GuardInspector("eager").inspect(Scaled(), torch.ones(3), 2)
    cosine = GuardInspector("eager").inspect(lambda y: y.cos(), torch.ones(5))

    frame = scaled.compiles[0]
    assert frame.facts.function == "forward" and frame.facts.operators == 2
    assert ".sin()" in frame.graph and "__compiled_fn" in frame.bytecode
    by_source = {one.source: one for one in frame.guards if one.kind in ("EQUALS_MATCH", "TENSOR_MATCH")}
    assert by_source["L['n']"].code == "L['n'] == 2"
    assert by_source["L['n']"].python.startswith("test_inspector.py:")
    assert by_source["L['n']"].line == "return x.sin() * n"
    assert "size=[3]" in by_source["L['x']"].code
    # not of a model that the inspector itself knows
    assert {one.source for one in cosine.compiles[0].guards} >= {"L['y']"}
    assert ".cos()" in cosine.compiles[0].graph and scaled.status == cosine.status == 0


def test_a_summary_names_where_the_other_guards_of_a_compile_are() -> None:
    report = GuardInspector("eager").inspect(Scaled(), torch.ones(3), 2)

    assert " more: compiles[0].guards" in report.summary() and "--frame" not in report.summary()


def test_a_program_is_compiled_once_and_called_once_as_without_the_inspector() -> None:
    graphs: list[torch.fx.GraphModule] = []
    calls: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(graph)
        return lambda *inputs: calls.append(1) or graph(*inputs)

    compiled = torch.compile(branching, backend=backend)
    report = GuardInspector().inspect(compiled, torch.ones(3))
    compiled(torch.ones(3))

    assert len(report.graphs) == len(graphs) == 2
    assert len(calls) == 4


def test_a_recompilation_names_the_guard_that_failed_and_keeps_what_was_compiled_before() -> None:
    compiled = torch.compile(Scaled(), backend="eager")
    compiled(torch.ones(3), 2)

    report = GuardInspector().inspect(compiled, torch.ones(3), 3)

    cached, new = report.compiles
    assert cached.cached and not cached.graph and "__compiled_fn" in cached.bytecode
    assert (
        "forward (test_inspector.py" in report.summary()
        and ": compiled before, graph not known, " in report.summary()
    )
    assert "1 frame, 1 graph and 1 not known, " in report.summary()
    assert [one["operators"] for one in report.json()["compiles"]] == [None, new.facts.operators]
    assert "L['n'] == 2" in [one.code for one in cached.guards]
    assert [one.facts.compile_id for one in report.recompilations] == [new.facts.compile_id]
    (failed,) = new.facts.failed
    assert failed.compile_id == cached.facts.compile_id
    assert failed.guard.code.endswith("n == 2") and failed.guard.line == "return x.sin() * n"


def test_parts_after_graph_breaks_are_in_the_caches_too() -> None:
    compiled = torch.compile(branching, backend="eager")
    compiled(torch.ones(3))

    report = GuardInspector().inspect(compiled, torch.ones(3))

    assert [one.facts.function.partition("_resume_in_")[2] for one in report.compiles] == [
        "",
        report.compiles[1].facts.function.partition("_resume_in_")[2],
    ]
    assert report.compiles[1].facts.function.startswith("torch_dynamo_resume_in_branching")


def test_inside_of_the_block_every_compile_of_the_process_is_noted_and_afterwards_none() -> None:
    with GuardInspector() as inspector:
        torch.compile(branching, backend="eager")(torch.ones(3))
    torch.compile(lambda x: x.tan(), backend="eager")(torch.ones(3))

    (site,) = inspector.report.breaks
    assert site.graph_break.reason.startswith("Data-dependent branching")
    assert site.graph_break.line == "if x.sum() > 0:"
    assert len(inspector.report.compiles) == 2 and inspector.report.status == 1


def test_a_break_in_a_called_function_is_at_its_own_line() -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with GuardInspector() as inspector:
        torch.compile(lambda x: helper(x.sin()), backend="eager")(torch.ones(3))

    assert [one.graph_break.line for one in inspector.report.breaks] == ["torch._dynamo.graph_break()"]


def test_a_break_without_a_reason_says_so() -> None:
    facts = FrameCompile("0/0", "f", "a.py:1", breaks=(GraphBreak("", "a.py:2", "x.item()"),))
    report = InspectedProgram((CompiledFrame(facts, "graph", "bytecode"),))

    assert "graph break at a.py:2: x.item() (0/0)\n    no reason given" in report.summary()


def test_a_break_shows_the_setting_that_torch_proposes() -> None:
    reason = "no LSTM\n  Explanation: none.\n  Hint: Set torch._dynamo.config.allow_rnn=True."
    facts = FrameCompile("0/0", "f", "a.py:1", breaks=(GraphBreak(reason, "a.py:2", "lstm(x)"),))
    report = InspectedProgram((CompiledFrame(facts, "graph", "bytecode"),))

    assert "no LSTM. none.\n    torch proposes: set torch._dynamo.config.allow_rnn=True\n" in report.summary()
