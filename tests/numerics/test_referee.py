"""The verdict on results of compiled code that differ from eager: rounding, random numbers, or a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
import torch._inductor.config as inductor
from commands import DATA
from handmade.records import INFO
from torch._inductor import decomposition

from tracing import store
from tracing.model import Outcome
from tracing.numerics.agreement import agreement
from tracing.numerics.referee import Referee
from tracing.numerics.reference import Expected
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.run import record

aten = torch.ops.aten


def outcome(runs: Path, what: str, *, referee: bool = True) -> Outcome:
    device = Device("sm_90")
    experiment = Experiment(
        device.load(f"{DATA / 'refereed.py'}:what={what}"), device, seed=0, referee=referee
    )
    writer = store.create(runs, INFO)
    return record(experiment, LaunchRecorder(writer), lambda stage: None, passes=None)


@contextmanager
def fault(change: Callable[[torch.fx.Node], None]) -> Iterator[None]:
    """Installs a faulty graph pass in Inductor."""

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


@pytest.mark.parametrize("what", [pytest.param("attention", marks=pytest.mark.soak), "embedding"])
def test_rounding_is_no_difference(what: str, tmp_path: Path) -> None:
    verdict = outcome(tmp_path, what)

    assert verdict.status == "passed", verdict.detail
    assert re.search(r"; within rounding: \d+ results?, ", verdict.detail)


@pytest.mark.soak
def test_fixed_tolerances_report_the_same_rounding_as_a_difference(tmp_path: Path) -> None:
    assert outcome(tmp_path, "attention", referee=False).status == "differs"


@pytest.mark.parametrize(
    ("elements", "verdict", "samples"), [(1, "within rounding", [8, 32]), (20, "compiled is off", [8])]
)
def test_few_elements_that_are_off_are_judged_by_more_runs(
    elements: int, verdict: str, samples: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    eager, compiled = torch.ones(1000), torch.ones(1000)
    compiled[:elements] = 2

    def of_rare_jumps(run: object, samples: int = 8, **_: object) -> dict[str, Expected]:
        asked.append(samples)
        spread = torch.zeros(1000, dtype=torch.float64)
        spread[0] = 0.2 if samples > 8 else 0
        return {"output": Expected(torch.ones(1000, dtype=torch.float64), spread)}

    monkeypatch.setattr("tracing.numerics.referee.reference", of_rare_jumps)
    judged = Referee(lambda: {}, lambda: {}, lambda _: None).judge("output", compiled, eager)

    assert judged is not None and (judged.verdict, asked) == (verdict, samples)


@pytest.mark.parametrize("off", [1, 0])
def test_a_compile_with_eagers_random_numbers_is_judged_by_more_runs_and_for_its_precision(
    off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.ones(1000, dtype=torch.float64)
    eager, equal_numbers = torch.ones(1000), torch.ones(1000)
    equal_numbers[:off] = 2
    # far enough away to be called less precise, if the random numbers were equal
    other_numbers = torch.full((1000,), 2.0) if off else eager + 7 * torch.finfo(torch.float32).eps

    def of_rare_jumps(run: object, samples: int = 8, **_: object) -> dict[str, Expected]:
        spread = torch.zeros(1000, dtype=torch.float64)
        spread[0] = 0.2 if samples > 8 else 0
        return {"output": Expected(exact, spread, drawn=True)}

    monkeypatch.setattr("tracing.numerics.referee.reference", of_rare_jumps)
    referee = Referee(lambda: {}, lambda: {"output": equal_numbers}, lambda _: None)
    judged = referee.judge("output", other_numbers, eager)

    assert judged is not None
    assert (judged.verdict, judged.other_numbers) == ("within rounding", True)
    assert not judged.less_precise


def test_other_random_numbers_are_no_difference(tmp_path: Path) -> None:
    verdict = outcome(tmp_path, "dropout")

    assert verdict.status == "passed", verdict.detail
    compared = "output, grad of input 0 in a second compile, which draws eager's random numbers: kernels that"
    assert compared in verdict.detail


def test_a_wrong_constant_is_detected_despite_different_random_numbers(tmp_path: Path) -> None:
    with fault(another_constant):
        verdict = outcome(tmp_path, "dropout")

    assert verdict.status == "differs"
    assert "compiled is off" in verdict.detail


@pytest.mark.parametrize("what", ["dropout", "opaque dropout"])
def test_random_numbers_that_no_compile_draws_as_eager_does_decide_nothing(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
        kept = torch.rand_like(x) > p
        return kept * x / (1 - p), kept

    monkeypatch.setitem(decomposition.decompositions, aten.native_dropout.default, dropped)
    decomposition.fast_random_decomps.cache_clear()
    verdict = outcome(tmp_path, what)

    assert verdict.status == "not decided"
    ours, theirs = "rand of float32 (64, 64), strides (64, 1)", "bernoulli of (64, 64), strides (64, 1)"
    assert f"different random numbers: compiled draws {ours}, eager {theirs}" in verdict.detail


def test_a_kernel_that_computes_doubles_in_float32_is_off(tmp_path: Path) -> None:
    verdict = outcome(tmp_path, "doubles")

    assert verdict.status == "differs" and "output[0]: compiled is off" in verdict.detail
    assert verdict.differing == ("output[0]",)


@pytest.mark.parametrize(("added", "status"), [(0, "passed"), (100, "not decided")])
def test_indices_that_no_order_of_equal_values_gives_are_not_decided(
    added: int, status: str, tmp_path: Path
) -> None:
    x = torch.tensor([[2.0, 1, 1, 0]])
    computed = x.sigmoid() * 1.1

    def eager() -> dict[str, torch.Tensor]:
        return {"output": (x.sigmoid() * 1.1).argsort()}

    order = torch.tensor([[3, 1, 2, 0]]) if computed.argsort()[0, 1] == 2 else torch.tensor([[3, 2, 1, 0]])
    referee = Referee(eager, lambda: {}, lambda _: None)
    one = agreement({"output": order + added * torch.tensor([0, 1, 1, 0])}, eager(), referee)

    assert one.outcome.status == status, one.outcome.detail


@pytest.mark.parametrize("change", [None, another_constant])
def test_a_compile_with_eagers_numbers_is_compared_where_there_is_no_reference(
    change: Callable[[torch.fx.Node], None] | None, tmp_path: Path
) -> None:
    with fault(change) if change else nullcontext():
        verdict = outcome(tmp_path, "opaque dropout")

    assert verdict.status == ("differs" if change else "passed"), verdict.detail
    assert ("fixed tolerances decide on output" in verdict.detail) == bool(change)
    assert verdict.other_numbers == (() if change else ("output",))


@pytest.mark.parametrize("change", [None, another_function])
def test_what_a_case_compiles_itself_runs_as_it_is_written_in_eager(
    change: Callable[[torch.fx.Node], None] | None, tmp_path: Path
) -> None:
    with fault(change) if change else nullcontext():
        verdict = outcome(tmp_path, "compiled itself")

    assert verdict.status == ("differs" if change else "passed"), verdict.detail


@pytest.mark.soak
def test_a_compiled_step_of_adam_is_less_precise_and_no_difference(tmp_path: Path) -> None:
    verdict = outcome(tmp_path, "step")

    assert verdict.status == "passed", verdict.detail
    traced = "torch.compile traces optimizers with bias corrections of float32"
    assert f"less precise than eager, because {traced}: parameter model.0.weight" in verdict.detail


@pytest.mark.soak
def test_a_compiled_step_of_another_length_is_a_difference(tmp_path: Path) -> None:
    verdict = outcome(tmp_path, "scaled step")

    assert verdict.status == "differs"
    assert "parameter model.0.weight" in verdict.differing


def test_a_mutated_input_is_judged_like_a_result(tmp_path: Path) -> None:
    with fault(another_function):
        verdict = outcome(tmp_path, "mutated")

    assert verdict.status == "differs"
    assert verdict.detail.startswith("input 1 afterwards: compiled is off: [")
    assert "where exact arithmetic gives" in verdict.detail


def test_random_inputs_excuse_no_wrong_result_that_another_compile_lacks(tmp_path: Path) -> None:
    graphs: list[torch.fx.Graph] = []

    def in_the_first_graph(node: torch.fx.Node) -> None:
        if not graphs:
            graphs.append(node.graph)
        if node.graph is graphs[0]:
            another_function(node)

    with fault(in_the_first_graph):
        verdict = outcome(tmp_path, "mutated")

    assert verdict.status == "differs" and len(graphs) == 1
    assert verdict.detail.startswith("input 1 afterwards: compiled is off: [")


def test_a_case_that_keeps_state_has_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.functional, "relu", torch.nn.functional.relu)  # the case leaves another one
    device = Device("sm_90")
    experiment = Experiment(device.load(str(DATA / "leaking.py")), device, 0)
    writer = store.create(tmp_path, INFO)

    verdict = record(experiment, LaunchRecorder(writer), lambda stage: None, passes=None)

    assert verdict.status == "differs"
    assert (
        "fixed tolerances decide on output: it has no reference, because of eager itself: repeated, it gives "
        "another result" in verdict.detail
    )


def test_bitwise_equal_results_need_no_run_in_float64(tmp_path: Path) -> None:
    verdict = outcome(tmp_path, "integers")

    assert verdict == Outcome("passed", "the result agrees with eager")


def test_the_progress_of_the_referee_does_not_call_results_different() -> None:
    said: list[str] = []
    Referee(lambda: {"output": torch.ones(3).sin()}, lambda: {}, said.append).prepare()

    assert len(said) > 1 and not any("differ" in text for text in said)
