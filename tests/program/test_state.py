"""The state that a case starts from and leaves: every tensor that its function reaches, by access path."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from data import state_of_a_module

from tracing.model import PlainValue, Workload
from tracing.program.experiment import results_of
from tracing.program.reachable import reachable
from tracing.program.state import left_by, start_of, stepped

CACHE = {"calls": torch.zeros(1)}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(1))
        self.history = [torch.zeros(1)]
        self.itself = [self]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return self.head(x)


class Holder:
    def __init__(self) -> None:
        self.cache = {"k": torch.ones(2)}
        self.me = self

    def run(self) -> None: ...


PARAMETERS = ["parameter head.weight", "parameter head.bias"]


def named(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> list[str]:
    return sorted(reachable(Workload(fn, args, kwargs)).tensors)


def test_a_module_has_parameters_buffers_and_its_other_tensors() -> None:
    assert named(Model()) == sorted([*PARAMETERS, "buffer seen", "state history[0]"])


def test_a_closure_reaches_its_variables_and_globals() -> None:
    model = Model()

    def step(x: torch.Tensor) -> torch.Tensor:
        CACHE["calls"] += 1
        return model(x)

    reached = named(torch.compiler.disable(step))

    assert "state CACHE['calls']" in reached
    assert "parameter model.head.weight" in reached and "buffer model.seen" in reached


def test_a_global_that_only_a_called_function_uses_is_reached() -> None:
    def count() -> None:
        CACHE["calls"] += 1

    assert named(lambda: count()) == ["state count.CACHE['calls']"]


def test_class_attributes_and_globals_of_methods_are_reached() -> None:
    class Counter:
        total = torch.zeros(1)

        def __call__(self) -> None:
            CACHE["calls"] += 1

    class Calling(torch.nn.Module):
        seen: ClassVar = [torch.zeros(1)]

        def forward(self) -> None:
            CACHE["calls"] += 1

    assert named(Counter()) == ["state __call__.CACHE['calls']", "state total"]
    assert named(Calling()) == ["state forward.CACHE['calls']", "state seen[0]"]


def test_a_global_of_another_module_of_the_users_is_reached() -> None:
    def count() -> None:
        state_of_a_module.CALLS += 1

    assert named(count) == ["state state_of_a_module.CALLS"]


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (Holder().run, ["state self.cache['k']"]),
        (functools.partial(lambda x, y: x, torch.ones(1), y=torch.ones(1)), ["state args[0]", "state y"]),
        ([torch.ones(1)].append, []),
    ],
)
def test_a_bound_method_reaches_its_object_and_a_partial_its_arguments(
    fn: Callable[..., Any], names: list[str]
) -> None:
    assert named(fn) == names


def test_a_module_given_as_an_argument_is_reached_through_it() -> None:
    assert "input 1.head.weight" in named(lambda x, m: m(x), torch.ones(2), Model())
    assert named(lambda x: x, x={"a": [torch.ones(2)]}) == ["input x['a'][0]"]


def test_variables_of_one_name_in_two_functions_are_distinguished() -> None:
    def make(value: torch.Tensor) -> Callable[[], torch.Tensor]:
        return lambda: value

    fns = [make(torch.ones(1)), make(torch.zeros(1))]

    assert named(lambda: fns) == ["state fns[0].value", "state fns[1].value"]


def trained(lr: float = 0.5, schedule: bool = False) -> dict[str, Any]:
    """The state after a step whose optimizer is in the function's closure."""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) if schedule else None

    def step(x: torch.Tensor) -> None:
        model(x).sum().backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()

    workload = Workload(step, (torch.ones(2),))
    with stepped() as optimizers:
        workload.fn(*workload.args)
    return left_by(workload, optimizers)


def test_a_training_step_results_in_gradients_parameters_and_optimizer_state() -> None:
    left = trained()

    assert {"grad of model.head.weight", "parameter model.head.weight", "input 0 afterwards"} <= left.keys()
    assert torch.equal(left["optimizer.state[0]['momentum_buffer']"], left["grad of model.head.weight"])
    assert left["optimizer.param_groups[0]['lr']"] == PlainValue("float", "0.5")


def test_a_different_learning_rate_after_the_last_step_is_a_different_state() -> None:
    assert trained(schedule=True)["optimizer.param_groups[0]['lr']"] == PlainValue("float", "0.25")


def test_an_optimizer_that_nothing_reaches_is_known_by_its_step() -> None:
    model = Model()

    def step() -> None:
        model(torch.ones(2)).sum().backward()
        torch.optim.Adam(model.parameters(), 0.25).step()

    with stepped() as optimizers:
        step()
    left = left_by(Workload(step), optimizers)

    assert left["stepped Adam.param_groups[0]['lr']"] == PlainValue("float", "0.25")
    assert "stepped Adam.state[0]['exp_avg']" in left


def test_parameters_that_only_an_optimizer_holds_are_results() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = torch.optim.SGD([weight], 0.5)

    left = left_by(Workload(lambda: optimizer.step()), [])

    name = "optimizer.param_groups[0]['params'][0]"
    assert left[f"parameter {name}"] is weight
    assert left[f"grad of {name}"] is weight.grad


def test_whether_a_result_requires_gradients_and_its_own_gradient_are_results() -> None:
    weight = torch.ones(2, requires_grad=True)

    def run(x: torch.Tensor) -> list[torch.Tensor]:
        leaf = torch.zeros(2, requires_grad=True)
        leaf.grad = x * 2
        x.grad = x * 3
        return [x * weight, (x * weight).detach(), leaf, x]

    results = results_of(Workload(run, (torch.ones(2),)), None, 0)

    flows = [name for name in results if name.startswith("requires_grad of ")]
    assert flows == ["requires_grad of output[0]", "requires_grad of output[2]"]
    grads = [name for name in results if name.startswith("grad of ")]
    assert grads == ["grad of output[2]", "grad of input 0"]


def test_a_case_starts_from_its_arguments_its_state_and_the_random_generator() -> None:
    torch.manual_seed(7)
    start = start_of(Workload(Model(), (torch.ones(2), 3.5), {"mode": "a"}))

    assert {"input 0", *PARAMETERS, "buffer seen", "torch's random generator"} <= start.keys()
    assert start["input 1"] == PlainValue("float", "3.5")
    assert start["input mode"] == PlainValue("str", "'a'")
