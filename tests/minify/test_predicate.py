"""How a graph fails, and the script that fails likewise. tests/soak runs scripts in fresh processes."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch._inductor import lowering

from tracing.analyze.minify.graph_edit import GraphEdit
from tracing.analyze.minify.trial import ScriptForm, Trial, script_forms
from tracing.minify.captured_graph import captured_graphs
from tracing.minify.graph_trials import GraphTrials
from tracing.minify.predicate import Fails, OtherKernels, error_text
from tracing.minify.script import write_script
from tracing.minify.small_graph import SmallGraph, small_graph
from tracing.model import Case, Workload
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.upstream.inductor.config import setting, settings_changed

DEVICE = Device("sm_90")
SET_BY_SCRIPTS = ("compile_threads", "fallback_random", "cpu_backend", "force_disable_caches")


def test_an_error_that_wraps_another_is_named_with_it() -> None:
    wrapped = RuntimeError("backend='inductor' raised:\nAssertionError: no layout\n\nSet TORCH_LOGS for more")

    assert error_text(wrapped) == "RuntimeError: backend='inductor' raised: AssertionError: no layout"
    assert error_text(ValueError()) == "ValueError"


def test_an_error_of_tritons_compiler_is_named_without_the_source_before_it() -> None:
    compiler = "CompilationError: at 3:32:\ndef f(x):\n    y = g(x)\n        ^\nNameError('g is not defined')"

    assert error_text(RuntimeError(compiler)) == (
        "RuntimeError: CompilationError: at 3:32: NameError('g is not defined')"
    )


@pytest.fixture(scope="module")
def graph() -> SmallGraph:
    case = Case("small", Path(__file__), "", lambda device: Workload(torch.erf, (torch.rand(3),)))
    (captured,) = captured_graphs(Experiment(case, DEVICE, 0))
    return small_graph(captured, GraphEdit(0, tuple(node.name for node in captured.nodes())))


@pytest.fixture
def one_percent_too_much(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Plants a fault into Inductor, until the fixture is undone; nothing is taken out of caches."""
    original = lowering.lowerings[torch.ops.aten.erf.default]

    def wrong(x: Any) -> Any:
        return lowering.lowerings[torch.ops.aten.mul.Tensor](original(x), 1.01)

    # Triton's kernels take a tenth of the time of C++
    with DEVICE.active(), settings_changed({"force_disable_caches": True}):
        monkeypatch.setitem(lowering.lowerings, torch.ops.aten.erf.default, wrong)
        yield monkeypatch
    torch.compiler.reset()


def status(script: Path) -> object:
    torch.compiler.reset()
    before = {name: setting(name) for name in SET_BY_SCRIPTS}  # the script sets them for good
    with settings_changed(before), pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script))
    return ended.value.code


def test_a_wrong_graph_and_its_scripts_fail_until_the_fault_is_mended(
    graph: SmallGraph, one_percent_too_much: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trial = msgspec.convert(Fails().ask(graph), type=Trial)
    assert (trial.kind, trial.how, trial.results) == ("differs", ("value",), ("output 0",))

    near, exact, *_ = script_forms(trial, virtual=False)
    assert (near, exact) == (ScriptForm(exact=False), ScriptForm())
    for form in (exact, near):
        assert write_script(graph, Fails(), trial, tmp_path / "repro.py", form, "case.py") == []
        assert status(tmp_path / "repro.py") == 1
    one_percent_too_much.undo()

    assert status(tmp_path / "repro.py") == 0


@pytest.mark.parametrize(
    ("setting", "kind"), [({}, "right"), ({"triton.autotune_pointwise": False}, "other kernels")]
)
def test_inductor_writes_the_same_kernels_once_more_and_other_ones_with_a_setting(
    graph: SmallGraph, setting: dict[str, object], kind: str
) -> None:
    with DEVICE.active():
        assert OtherKernels(setting).ask(graph)["kind"] == kind


class OtherFunction:
    """A post-grad pass that is wrong."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.tanh.default):
            node.target = torch.ops.aten.sin.default

    def uuid(self) -> str:
        return "other function"


def test_trials_with_other_options_are_other_trials() -> None:
    def identity(options: Any) -> str:
        workload = Workload(torch.tanh, (torch.ones(3),), options=options)
        case = Case("small", Path(__file__), "", lambda device: workload)
        return GraphTrials(Experiment(case, DEVICE.host(), 0), Fails()).identity()

    several: list[Any] = [None, {"max_fusion_size": 1}, {"max_fusion_size": 2}, {"pass": OtherFunction()}]
    assert len({*map(identity, several)}) == 4
    assert identity(several[3]) == identity({"pass": OtherFunction()})


@pytest.mark.parametrize("loads_case", [False, True])
@pytest.mark.parametrize(
    ("options", "kind", "text", "in_script"),
    [
        (None, "right", "", {"torch.compile(Graph())"}),
        ({"no_such_option": 1}, "raises", "no_such_option", {"options={'no_such_option': 1})"}),
        (
            {"post_grad_custom_post_pass": OtherFunction()},
            "differs",
            "output 0",
            {"torch.compile(Graph())", "torch.compile(Graph(), options=CASE.options)"},
        ),
    ],
    ids=["none", "text", "object"],
)
def test_a_graph_is_compiled_with_the_options_of_its_case(
    options: Any, kind: str, text: str, in_script: set[str], loads_case: bool, tmp_path: Path
) -> None:
    case = Case(
        "small", Path(__file__), "", lambda device: Workload(torch.tanh, (torch.rand(3),), options=options)
    )
    (captured,) = captured_graphs(Experiment(case, DEVICE.host(), 0))
    small = small_graph(captured, GraphEdit(0, tuple(node.name for node in captured.nodes())))

    answer = Fails().ask(small)
    assert answer["kind"] == kind and text in answer["text"]
    trial = Trial(**{"results": ["output 0"], **answer, "kind": "differs"})
    write_script(small, Fails(), trial, tmp_path / "repro.py", ScriptForm(loads_case=loads_case), "case.py")
    script = (tmp_path / "repro.py").read_text()
    assert any(one in script for one in in_script)
    assert ("options=CASE.options" in script) == (loads_case and kind == "differs")
