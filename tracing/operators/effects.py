"""The tensors that an operator outside of Triton reads, writes and allocates.

They follow from the operator's schema; tables in this module correct incomplete and wrong schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tracing.launch.tensors import tensors_in
from tracing.model.collectives import TWO_SIDED, is_collective
from tracing.upstream.torch.operator_schemas import is_composite, is_operator, schema_of
from tracing.upstream.torch.tensor_subclasses import has_storage, storage_key


@dataclass(frozen=True, slots=True)
class Effect:
    """The arguments and results that an operator reads and writes."""

    name: str
    positions: tuple[int, ...] = ()  # of the arguments that it writes
    keywords: tuple[str, ...] = ()
    outputs: tuple[int, ...] = ()  # that may be new
    only: bool = True  # there is one output, not a tuple
    check: bool = False  # an output may share memory with an input
    unread: tuple[int, ...] = ()  # positions that it writes without having read them
    training: int | None = None  # position of the flag without which nothing is written in place
    collective: bool = False
    allocates: bool = False  # its outputs are not initialised
    resizes: bool = False  # it writes the bytes by which the storage of its first argument grew
    random: bool = False  # it draws from a generator
    parameters: tuple[str, ...] = ()  # the names of its arguments
    defaults: Mapping[str, float] = field(default_factory=dict)  # floating-point ones, by argument
    function: Any = field(default=None, compare=False, repr=False)  # the operator itself

    @property
    def copies(self) -> bool:
        """True if its result holds the elements of its one input, possibly with another dtype."""
        return self.name.partition(".")[0] in _COPIES

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        """The tensors that it reads, in the order of its arguments; before it runs."""
        read: list[torch.Tensor] = []
        if self.allocates:
            return read
        if self.unread:
            args = [value for position, value in enumerate(args) if position not in self.unread]
        _collect(args, read)
        if kwargs:
            _collect([value for name, value in kwargs.items() if name not in self.keywords], read)
        return read

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> list[torch.Tensor]:
        """The tensors that it has written: mutated arguments, then outputs that are no views of inputs."""
        written: list[torch.Tensor] = []
        if self.positions and (self.training is None or args[self.training]):
            _collect([args[position] for position in self.positions if position < len(args)], written)
        if self.keywords:
            _collect([kwargs.get(keyword) for keyword in self.keywords], written)
        if self.outputs:
            new: list[torch.Tensor] = []
            _collect((result,) if self.only else [result[i] for i in self.outputs], new)
            written += _unshared(new, args, kwargs) if self.check else new
        return written


# Their result is not initialised.
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_empty")
# Declared as writing, but what they change is not the elements.
_METADATA = ("aten::record_stream", "aten::requires_grad_", "aten::set_", "aten::_coalesced_", "aten::resize")
_RESIZE = ("aten::resize_", "aten::resize_as_")
# Their outputs are views, or may be the input itself, though the schema does not say so.
_VIEWS = ("aten::_unsafe_view", "aten::unsafe_", "aten::lift", "aten::conj_physical")
# The only operator of torch.tensor([1, 2]): its result is its argument, which is new.
_NEW = "aten::lift_fresh"
# Their result holds the elements of their input.
_COPIES = {f"aten::{name}" for name in ("clone", "_to_copy", "copy_", "contiguous", "to")}
# They replace every element of their first argument.
_REPLACES = {
    f"aten::{name}_"
    for name in ("copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential", "cauchy",
                 "geometric", "log_normal", "_foreach_copy", "_foreach_zero")
}  # fmt: skip
# Of their first argument they read the layout and no element.
_LIKE = {
    f"aten::{name}"
    for name in ("zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
                 "new_zeros", "new_ones", "new_full")
}  # fmt: skip
# They update running_mean and running_var, arguments 3 and 4, if argument 5 (training) is true; undeclared.
_NORMS = tuple(
    f"aten::{name}"
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm", "instance_norm")
)
_STATISTICS, _TRAINING = ("running_mean", "running_var"), 5
# Collectives in place declare nothing: what they write is always their first argument. (torch/csrc/
# distributed/c10d/Ops.cpp; `_c10d_functional` does declare.)
_COLLECTIVE = "c10d::"
_READING_COLLECTIVES = ("c10d::send", "c10d::barrier", "c10d::monitored_barrier_")


def undeclared_writes(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[str]:
    """The names of the arguments that a call writes although its operator's schema does not say so."""
    if func.name() not in _NORMS:
        return ()
    flag = schema_of(func).arguments[_TRAINING].name
    return _STATISTICS if (args[_TRAINING] if len(args) > _TRAINING else kwargs[flag]) else ()


def effect_of(func: Any) -> Effect | None:
    """The effect of an operator on memory; None: it neither writes nor allocates, as far as is known."""
    if not is_operator(func):
        return None  # a higher order operator
    effect = _effect_of(func)
    if effect is None:
        return None
    usual = {argument.name: argument.default_value for argument in schema_of(func).arguments}
    defaults = {name: value for name, value in usual.items() if isinstance(value, float)}
    return replace(effect, defaults=defaults, function=func)


def _effect_of(func: Any) -> Effect | None:
    name: str = func.name()  # type: ignore[no-untyped-call, unused-ignore]
    parameters = tuple(argument.name for argument in schema_of(func).arguments)
    if name.startswith(_EMPTY):
        new = not name.endswith(("out", "_"))  # empty.out may allocate; nothing shows if it did
        return Effect(name, outputs=(0,), allocates=True, parameters=parameters) if new else None
    if name in _RESIZE:
        return Effect(name, positions=(0,), resizes=True, parameters=parameters)
    if torch.Tag.inplace_view in func.tags or name.startswith((*_METADATA, *_READING_COLLECTIVES)):
        return None
    if name.startswith(_COLLECTIVE):
        receives = name.partition("::")[2].startswith((*TWO_SIDED, "recv"))
        return Effect(
            name,
            positions=(0,),
            unread=(0,) if receives else (),
            collective=is_collective(name),
            parameters=parameters,
        )
    return _by_schema(name, func, parameters)


def _by_schema(name: str, func: Any, parameters: tuple[str, ...]) -> Effect | None:
    schema = schema_of(func)
    mutated = [(i, a) for i, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write]
    positions = tuple(i for i, a in mutated if not a.kwarg_only)
    keywords = tuple(a.name for _, a in mutated if a.kwarg_only)
    # In inference mode composite operators are not taken apart: `reshape` may have copied, `dropout` not.
    # Operators of other libraries may return what they were given (_c10d_functional::wait_tensor).
    composite = is_composite(name)
    check = name != _NEW and (composite or not name.startswith("aten::") or name.startswith(_VIEWS))
    outputs = tuple(
        i
        for i, r in enumerate(schema.returns)
        if r.alias_info is None or name == _NEW or (check and not r.alias_info.is_write)
    )
    norm = name in _NORMS
    if not (positions or keywords or outputs):
        return None
    return Effect(
        name,
        positions=(3, 4) if norm else positions,
        keywords=keywords,
        outputs=outputs,
        only=len(schema.returns) == 1,
        check=check,
        unread=(0,) if name.partition(".")[0] in _REPLACES | _LIKE | {_NEW} else (),
        training=_TRAINING if norm else None,
        collective=is_collective(name),
        random=torch.Tag.nondeterministic_seeded in func.tags,
        parameters=parameters,
    )


def _collect(values: Iterable[Any], tensors: list[torch.Tensor]) -> None:
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (list, tuple)):
            _collect(value, tensors)


def _unshared(
    new: Sequence[torch.Tensor], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[torch.Tensor]:
    known = {_storage(tensor) for tensor in tensors_in([*args, *kwargs.values()])}
    return [tensor for tensor in new if _storage(tensor) not in known]


def _storage(tensor: torch.Tensor) -> int:
    # sparse tensors have none
    return storage_key(tensor.untyped_storage()) if has_storage(tensor) else id(tensor)
