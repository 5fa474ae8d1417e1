"""Which operator outside of Triton wrote a tensor: ATen, collectives, custom operators.

What a Triton kernel reads may come from a matrix product of a library, an all-reduce or a `copy_` of the
host program. All of them pass torch's dispatcher, also out of Inductor's compiled code; schemas say what
each writes. Where schemas are silent or wrong, the table is here. Collectives are landmarks besides, at which
the ranks of a job are compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from tracing.record import hooks
from tracing.record.landmarks import Landmarks, is_collective, tensors_in
from tracing.record.operator_mode import OperatorMode


class OperatorWrites(OperatorMode):
    """While active, every operator of this thread that writes or makes a tensor is told to `wrote`.

    wrote -- called after the operator was issued with its name, "aten::mm.out", and the tensors that it
             wrote: those that its schema declares as mutated, and its outputs unless they are views of
             inputs or uninitialised (`empty`). It should keep no tensor: torch copies the head of an output
             that somebody else holds. Operators that `wrote` itself calls are not told.
    landmarks -- is told of collectives, and waits for them; None: nobody is

    Autograd carries the mode to the threads of a backward pass: `wrote` may be called from these.
    torch.compile still compiles. A tensor subclass is not told, but the operators on the plain tensors inside
    of it; fake and meta tensors, which have no memory, are not told either. Nor is anything under
    `hooks.hidden()`, as an autotuner restoring what its trial launches spoilt, or under
    `torch._C._DisableTorchDispatch`.
    Cost: 5 to 8 µs an operator, of which 4 to 7 are what any dispatch mode costs.

    Not covered: threads that the program starts itself, Inductor's cpp_wrapper and AOTInductor code, branches
    of control flow operators that run in eager mode, and CUDA graph replays.
    """

    def __init__(
        self, wrote: Callable[[str, Sequence[torch.Tensor]], None], landmarks: Landmarks | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._wrote = wrote
        self._landmarks = landmarks
        self._effects: dict[Any, _Effect | None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if types and any(map(_takes_itself_apart, types)):
            return NotImplemented  # its operators come back here
        try:
            effect = self._effects[func]
        except KeyError:
            effect = self._effects[func] = _effect(func)
        if effect is None or hooks._thread.hidden:
            return func(*args, **kwargs)
        if effect.collective and self._landmarks is not None and all(map(_has_memory, tensors_in(args))):
            issue = functools.partial(func, *args, **kwargs)
            result = self._landmarks.around(effect.name, issue, args, kwargs)
        else:
            result = func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            tensors = [t for t in effect.written(args, kwargs, result) if _has_memory(t)]
            if tensors:
                self._wrote(effect.name, tensors)
        return result


@dataclass(frozen=True, slots=True)
class _Effect:
    """What an operator writes, in the places where a dispatch mode is given it."""

    name: str
    positions: tuple[int, ...]
    keywords: tuple[str, ...]
    outputs: tuple[int, ...]  # that may be new
    only: bool  # there is one output, not a tuple
    check: bool  # an output may share memory with an input
    training: int | None = None  # position of the flag without which nothing is written in place
    collective: bool = False

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Iterator[torch.Tensor]:
        if self.training is None or args[self.training]:
            for position in self.positions:
                if position < len(args):
                    yield from tensors_in(args[position])
        for keyword in self.keywords:
            yield from tensors_in(kwargs.get(keyword))
        if self.outputs:
            results = (result,) if self.only else result
            new = tensors_in([results[i] for i in self.outputs])
            yield from _unshared(new, (args, kwargs)) if self.check else new


# Their result is not initialised.
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_empty")
# Declared as writing, but what they change is not the elements.
_METADATA = ("aten::record_stream", "aten::requires_grad_", "aten::set_", "aten::_coalesced_", "aten::resize")
# Their outputs are views, or may be the input itself, though the schema does not say so.
_VIEWS = ("aten::_unsafe_view", "aten::unsafe_", "aten::lift", "aten::conj_physical")
# They update running_mean and running_var, arguments 3 and 4, if argument 5 (training) is true; undeclared.
_NORMS = tuple(
    f"aten::{name}"
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm", "instance_norm")
)
# Collectives in place declare nothing: what they write is always their first argument. (torch/csrc/
# distributed/c10d/Ops.cpp; `_c10d_functional` does declare.)
_COLLECTIVE = "c10d::"
_READING_COLLECTIVES = ("c10d::send", "c10d::barrier", "c10d::monitored_barrier_")


def _effect(func: Any) -> _Effect | None:
    """What an operator writes; None: nothing, as far as can be known."""
    if not isinstance(func, torch._ops.OpOverload):
        return None  # a higher order operator
    name: str = func.name()  # type: ignore[no-untyped-call, unused-ignore]
    if torch.Tag.inplace_view in func.tags or name.startswith((*_EMPTY, *_METADATA, *_READING_COLLECTIVES)):
        return None
    if name.startswith(_COLLECTIVE):
        return _Effect(name, (0,), (), (), only=True, check=False, collective=is_collective(name))
    schema = func._schema
    mutated = [(i, a) for i, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write]
    positions = tuple(i for i, a in mutated if not a.kwarg_only)
    keywords = tuple(a.name for _, a in mutated if a.kwarg_only)
    # In inference mode composite operators are not taken apart: `reshape` may have copied, `dropout` not.
    # Operators of other libraries may return what they were given (_c10d_functional::wait_tensor).
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    check = composite or not name.startswith("aten::") or name.startswith(_VIEWS)
    outputs = tuple(
        i
        for i, r in enumerate(schema.returns)
        if r.alias_info is None or (check and not r.alias_info.is_write)
    )
    norm = name in _NORMS
    if not (positions or keywords or outputs):
        return None
    return _Effect(
        name,
        (3, 4) if norm else positions,
        keywords,
        outputs,
        only=len(schema.returns) == 1,
        check=check,
        training=5 if norm else None,
        collective=is_collective(name),
    )


def _takes_itself_apart(kind: Any) -> bool:
    plain = kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl
    return not (plain or issubclass(kind, FakeTensor))


def _has_memory(tensor: torch.Tensor) -> bool:
    return not (isinstance(tensor, FakeTensor) or tensor.is_meta or _takes_itself_apart(type(tensor)))


def _unshared(
    new: Iterator[torch.Tensor], arguments: tuple[Sequence[Any], Mapping[str, Any]]
) -> Iterator[torch.Tensor]:
    args, kwargs = arguments
    known = {_storage(tensor) for tensor in tensors_in([*args, *kwargs.values()])}
    return (tensor for tensor in new if _storage(tensor) not in known)


def _storage(tensor: torch.Tensor) -> int:
    # sparse tensors have none
    return tensor.untyped_storage()._cdata if torch._C._has_storage(tensor) else id(tensor)
