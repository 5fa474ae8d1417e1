"""An operator's non-tensor arguments, as text that is equal in every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tracing.operators.effects import Effect
from tracing.upstream.torch.operator_schemas import script_class

# Their text is that of the value; the class is compared, too, because True equals 1.
_VALUES = {bool, int, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
_TENSOR = "t"
NUMBER = "\0"  # the form of a text has it for a number; Python writes no such character


def structure(effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], key: list[Any]) -> None:
    """Append the arguments of a call, without tensors, to a key that differs for other arguments.

    Floating-point numbers are not part of it, except for defaults: they may be others at each step.
    """
    for name, value in _named(effect, args, kwargs):
        if _is_usual(effect, name, value):
            key.append(repr(value))
        else:
            _append(value, key)
    key += kwargs


def _append(value: Any, key: list[Any]) -> None:
    kind = type(value)
    if isinstance(value, torch.Tensor):
        key.append(_TENSOR)
    elif kind is float:
        key.append(NUMBER)
    elif kind in _VALUES:
        key.append(kind)
        key.append(value)
    elif isinstance(value, (list, tuple)):
        key.append(len(value))
        for member in value:
            _append(member, key)
    else:
        key.append(text_of(value))


def arguments_text(
    effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any], *, form: bool = False
) -> str:
    """`alpha=2, indices=[None, t]`: t is a tensor; arguments that are one tensor are left out.

    form -- floating-point numbers that are no defaults are written as NUMBER
    """
    return ", ".join(
        f"{name}={text_of(value, form=form and not _is_usual(effect, name, value))}"
        for name, value in _named(effect, args, kwargs)
        if not isinstance(value, torch.Tensor)
    )


def text_of(value: Any, *, form: bool = False) -> str:
    """A value as Python writes it; of an object that Python writes with its address, its class.

    form -- a floating-point number is written as NUMBER
    """
    if isinstance(value, torch.Tensor):
        return _TENSOR
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([text_of(member, form=form) for member in value])}]"
    if isinstance(value, torch.Generator):
        return f"generator of {value.device}"
    if isinstance(value, torch.ScriptObject):
        return script_class(value)
    if form and type(value) is float:
        return NUMBER
    if type(value) in _VALUES or isinstance(value, (float, complex)):
        return repr(value)
    text = repr(value)
    return f"a {type(value).__qualname__}" if " at 0x" in text or text.startswith("<") else text


def _named(effect: Effect, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from zip(effect.parameters, args, strict=False)
    yield from kwargs.items()


def _is_usual(effect: Effect, name: str, value: Any) -> bool:
    return type(value) is float and effect.defaults.get(name) == value
