"""Operators of torch's dispatcher: schemas, composite operators, implementations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._prims.rng_prims import (
    graphsafe_run_with_rng_state,
    run_and_save_rng_state,
    run_with_rng_state,
)

from tracing.upstream.contract import require

# of torch's own operators, which every process knows
OWN_NAMESPACES = (
    "aten",
    "prim",
    "prims",
    "inductor",
    "quantized",
    "_c10d_functional",
    "c10d",
    "higher_order",
)

_SEED = "philox_seed"  # an argument from which random numbers follow
_SWITCHES = ("dropout_p", "dropout", "train", "training")  # arguments that are false or 0: nothing is drawn


def is_operator(func: Any) -> bool:
    """False for higher order operators (cond, flex_attention), which have no schema."""
    return isinstance(func, torch._ops.OpOverload)


def overload_of(target: Any) -> Any:
    """The only overload of an operator that a node names without one, as aten.clone; all others as given."""
    if not isinstance(target, torch._ops.OpOverloadPacket):
        return target
    names: list[str] = target.overloads()  # type: ignore[no-untyped-call, unused-ignore]
    return target.default if [one for one in names if not one.endswith("out")] == ["default"] else target


def schema_of(func: Any) -> Any:
    """The schema of an operator: `arguments` and `returns`, each with its `alias_info`."""
    return func._schema


def named_arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of a call of an operator by name; those that it does not pass have their defaults."""
    arguments = schema_of(func).arguments
    given = {one.name: one.default_value for one in arguments if one.has_default_value()}
    return {**given, **{one.name: value for one, value in zip(arguments, args, strict=False)}, **kwargs}


def draws(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True if a call draws random numbers: attention without dropout, say, has the tag and draws none."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    given = named_arguments(func, args, kwargs)
    if _SEED in given:  # the gradients of attention
        return False
    return all(given.get(name) is None or given[name] for name in _SWITCHES)


def called_with_state(func: Any, args: Sequence[Any], result: Any) -> tuple[Any, Sequence[Any], Any] | None:
    """The operator, arguments and result inside of a call that saves or restores a generator's state.

    None: this is no such call. Compiled code makes them for checkpoints.
    """
    match func.name() if not is_operator(func) else "":
        case "run_and_save_rng_state":
            return args[0], args[1:], result[1]
        case "run_with_rng_state":
            return args[1], args[2:], result
        case "graphsafe_run_with_rng_state":
            return args[0], args[1:], result
    return None


def written_arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call that an operator's schema says it writes."""
    written = []
    for position, argument in enumerate(schema_of(func).arguments):
        if argument.alias_info and argument.alias_info.is_write:
            written.append(args[position] if position < len(args) else kwargs.get(argument.name))
    return written


def is_composite(name: str) -> bool:
    """True for a composite operator: "aten::reshape"."""
    # TorchScript's own operators, as prim::device, which modes also receive, are not in the dispatcher
    known = torch._C._dispatch_has_kernel(name)
    return known and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


@contextmanager
def implementations(namespace: str) -> Iterator[Any]:
    """While active, the torch.library.Library that it gives replaces implementations of operators."""
    library = torch.library.Library(namespace, "IMPL")  # type: ignore[no-untyped-call, unused-ignore]
    try:
        yield library
    finally:
        library._destroy()  # type: ignore[no-untyped-call, unused-ignore]


def script_class(value: torch.ScriptObject) -> str:
    """The name of the class of an object that C++ defines: "ProcessGroup"."""
    return str(value._type().qualified_name()).rpartition(".")[2]  # type: ignore[no-untyped-call, unused-ignore]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    add = torch.ops.aten.add_.Tensor
    require(named_arguments(add, (1, 2), {}) == {"self": 1, "other": 2, "alpha": 1}, "named arguments")
    require(is_operator(add) and not is_operator(torch.add), "operators that are known as such")
    mutated = [argument.name for argument in schema_of(add).arguments if argument.alias_info]
    require(mutated == ["self"], "the argument that add_ writes")
    x = torch.ones(1)
    given = torch.ops.aten.bernoulli.p, x, 0.5
    with torch.random.fork_rng([]):
        called = called_with_state(run_and_save_rng_state, given, run_and_save_rng_state(*given))
    require(called is not None and called[2].shape == x.shape, "a draw that saves the generator's state")
    require(called_with_state(add, (), None) is None, "an operator that saves no state")
    require(overload_of(torch.ops.aten.clone) is torch.ops.aten.clone.default, "an only overload")
    named = run_with_rng_state.name(), graphsafe_run_with_rng_state.name()
    require(named == ("run_with_rng_state", "graphsafe_run_with_rng_state"), "draws with a state")
    with implementations("aten") as library:
        require(hasattr(library, "impl"), "a library that replaces implementations")
    require(is_composite("aten::reshape") and not is_composite("aten::add.Tensor"), "composite operators")
    require(not is_composite("prim::device"), "an operator that is not in the dispatcher")
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    drawn = [draws(attention, (x, x, x, chance), {}) for chance in (0.0, 0.5)]
    require(
        drawn == [False, True] and not draws(attention, (x, x, x), {}), "attention that draws for dropout"
    )
