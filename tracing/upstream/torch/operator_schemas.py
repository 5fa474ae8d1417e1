"""Operators of torch's dispatcher: schemas, composite operators, implementations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

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

_SWITCHES = ("dropout_p", "dropout", "train", "training")  # arguments that are false or 0: nothing is drawn


def is_operator(func: Any) -> bool:
    """False for higher order operators (cond, flex_attention), which have no schema."""
    return isinstance(func, torch._ops.OpOverload)


def schema_of(func: Any) -> Any:
    """The schema of an operator: `arguments` and `returns`, each with its `alias_info`."""
    return func._schema


def draws(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True if a call draws random numbers: attention without dropout, say, has the tag and draws none."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    arguments = schema_of(func).arguments
    given = {one.name: one.default_value for one in arguments if one.has_default_value()}
    given |= {one.name: value for one, value in zip(arguments, args, strict=False)} | {**kwargs}
    return all(given.get(name) is None or given[name] for name in _SWITCHES)


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
    require(is_operator(add) and not is_operator(torch.add), "operators that are known as such")
    mutated = [argument.name for argument in schema_of(add).arguments if argument.alias_info]
    require(mutated == ["self"], "the argument that add_ writes")
    with implementations("aten") as library:
        require(hasattr(library, "impl"), "a library that replaces implementations")
    require(is_composite("aten::reshape") and not is_composite("aten::add.Tensor"), "composite operators")
    require(not is_composite("prim::device"), "an operator that is not in the dispatcher")
    attention, x = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default, torch.ones(1)
    drawn = [draws(attention, (x, x, x, chance), {}) for chance in (0.0, 0.5)]
    require(
        drawn == [False, True] and not draws(attention, (x, x, x), {}), "attention that draws for dropout"
    )
