"""The state of a case before and after it runs: arguments, parameters, buffers, gradients, optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from tracing.model import PlainValue, Uncomparable, Workload
from tracing.program.reachable import Reached, arguments, reachable
from tracing.program.structure import Facts, facts_of, type_name
from tracing.upstream.torch.dynamo import compiling_reported

AFTERWARDS = " afterwards"  # suffix of an argument's name: its value when the case has ended
STORAGE = "storage of "  # prefix of a result's name: the tensor whose storage it shares
DIFFERENTIABLE = "requires_grad of "  # prefix of a result's name
STEPPED = "stepped "  # name prefix of an optimizer that made a step and that no object refers to


@contextmanager
def stepped() -> Iterator[list[torch.optim.Optimizer]]:
    """While active, collects the optimizers that make a step; a compiled step is not observed."""
    optimizers: list[torch.optim.Optimizer] = []

    def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling() and all(one is not optimizer for one in optimizers):
            optimizers.append(optimizer)

    handle = register_optimizer_step_post_hook(after)
    try:
        yield optimizers
    finally:
        handle.remove()


@contextmanager
def steps_as_compiled() -> Iterator[None]:
    """While active, optimizers compute their steps as torch.compile traces them.

    torch then computes what depends on the number of the step, such as Adam's bias corrections, with tensors
    of float32, and otherwise with Python's numbers (torch.optim: `capturable or is_compiling()`).
    """
    with ExitStack() as step:

        def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            step.enter_context(compiling_reported())

        def after(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            step.close()

        handles = register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def start_of(workload: Workload) -> Facts:
    """The initial state of a workload, including torch's random generators."""
    facts = _state(workload, reachable(workload))
    facts["torch's random generator"] = torch.get_rng_state()
    if torch.cuda.is_available():
        facts["CUDA's random generator"] = torch.cuda.get_rng_state()
    return facts


def shared_storages(given: Facts, workload: Workload) -> Facts:
    """The tensors of a result that share the storage of an input, of a parameter, or of an earlier result.

    given -- the result, by name
    """
    known = {
        _storage(tensor): name for name, tensor in reachable(workload).tensors.items() if _has_storage(tensor)
    }
    facts: Facts = {}
    for name, one in given.items():
        if isinstance(one, torch.Tensor) and _has_storage(one):
            owner = known.setdefault(_storage(one), name)
            if owner != name:
                facts[f"{STORAGE}{name}"] = PlainValue("storage", f"that of {owner}")
    return facts


def differentiable(given: Facts) -> Facts:
    """The tensors of a result through which gradients flow."""
    tensors = {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}
    return {
        f"{DIFFERENTIABLE}{name}": PlainValue("bool", "True")
        for name, one in tensors.items()
        if one.requires_grad
    }


def gradients_of(given: Facts, workload: Workload) -> Facts:
    """The gradients that tensors of a result have themselves, other than those that the workload reaches."""
    leaves = {name: one for name, one in given.items() if isinstance(one, torch.Tensor) and one.is_leaf}
    own = {name: (id(one), one.grad) for name, one in leaves.items() if one.grad is not None}
    known = {id(one) for one in reachable(workload).tensors.values()} if own else {}
    return {f"grad of {name}": gradient for name, (number, gradient) in own.items() if number not in known}


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _has_storage(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout == torch.strided
        and type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and bool(tensor.numel())
    )


def left_by(workload: Workload, optimizers: list[torch.optim.Optimizer]) -> Facts:
    """The state after a workload: gradients, then its tensors.

    optimizers -- that made a step
    """
    reached = reachable(workload)
    known = {id(one) for one in reached.optimizers.values()}
    for one in optimizers:
        if id(one) not in known:
            reached.add_optimizer(f"{STEPPED}{type(one).__name__}", one)
    state = _state(workload, reached)
    facts: Facts = dict(_gradients(state))
    for name, fact in state.items():
        facts[name + AFTERWARDS if name.startswith("input ") else name] = fact
    return facts


def _state(workload: Workload, reached: Reached) -> Facts:
    facts: Facts = {}
    for name, value in arguments(workload).items():
        argument_facts = facts_of(value, name)  # a module's tensors are among those reached
        facts |= {at: one for at, one in argument_facts.items() if not isinstance(one, Uncomparable)}
    for name, tensor in reached.tensors.items():
        facts |= facts_of(tensor, name)
    for name, optimizer in reached.optimizers.items():
        facts |= _of_optimizer(optimizer, name)
    if not reached.whole:
        facts["further state"] = Uncomparable("objects", "the case reaches more values than are recorded")
    return facts


def _of_optimizer(optimizer: torch.optim.Optimizer, name: str) -> Facts:
    try:
        state = dict(optimizer.state_dict())
    except Exception as error:  # of the user's own
        return {name: Uncomparable(type_name(optimizer), f"its state_dict raises {type(error).__name__}")}
    # torch.compile sets "capturable" while it traces a step, and leaves it where the case changes the group
    groups = state.get("param_groups", [])
    state["param_groups"] = [{key: group[key] for key in group if key != "capturable"} for group in groups]
    members = (facts_of(value, f"{name}.{part}") for part, value in state.items())
    return {at: one for member in members for at, one in member.items()}


def _gradients(state: Facts) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in state.items():
        if isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.grad is not None:
            bare = name if name.startswith("input ") else name.partition(" ")[2]
            yield f"grad of {bare}", tensor.grad
