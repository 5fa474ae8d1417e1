"""An operator's non-tensor arguments, as text that is equal in every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from tracing.operators.effects import Effect
from tracing.upstream.torch.operator_schemas import script_class

# Their text is that of the value; the class is compared, too, because True equals 1.
_VALUES = {bool, int, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
_TENSOR = "t"


def structure(values: Iterable[Any], key: list[Any]) -> None:
    """Append these arguments, without tensors, to a key that differs for other arguments."""
    for value in values:
        kind = type(value)
        if isinstance(value, torch.Tensor):
            key.append(_TENSOR)
        elif kind in _VALUES:
            key.append(kind)
            key.append(value)
        elif isinstance(value, (list, tuple)):
            key.append(len(value))
            structure(value, key)
        else:
            key.append(text_of(value))


def arguments_text(effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """`alpha=2, indices=[None, t]`: t is a tensor; arguments that are one tensor are left out."""
    named = [*zip(effect.parameters, args, strict=False), *kwargs.items()]
    return ", ".join(
        f"{name}={text_of(value)}" for name, value in named if not isinstance(value, torch.Tensor)
    )


def text_of(value: Any) -> str:
    """A value as Python writes it; of an object that Python writes with its address, its class."""
    if isinstance(value, torch.Tensor):
        return _TENSOR
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, torch.Generator):
        return f"generator of {value.device}"
    if isinstance(value, torch.ScriptObject):
        return script_class(value)
    if type(value) in _VALUES or isinstance(value, (float, complex)):
        return repr(value)
    text = repr(value)
    return f"a {type(value).__qualname__}" if " at 0x" in text or text.startswith("<") else text
