"""Arguments and values of a recorded FX graph as those of Python: constants, tensors with their strides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tracing.judge.fx.no_reference import NoReference


def is_dense(value: Mapping[str, Any]) -> bool:
    """True if a tensor is known to have each element of its memory once; `value`: of its node."""
    shape, strides = value.get("shape", ()), value.get("stride", ())
    if not all(type(one) is int and one > 0 for one in (*shape, *strides)) or len(shape) != len(strides):
        return False
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return bool(last + 1 == math.prod(shape))


def clone(tensor: torch.Tensor) -> torch.Tensor:
    """[*] a clone, with the same strides unless elements overlap."""
    if 0 in tensor.stride() or tensor.is_contiguous():
        return tensor.clone()
    flat = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return flat.copy_(tensor)


def strided(result: Any, traced: Any) -> Any:
    """A result, or results, with the strides that a graph expects; `traced`: the value of its node.

    Inductor may choose other strides for what one of its graphs saves for another, and the functions of
    higher_order.py leave others.
    """
    if isinstance(result, list | tuple) and isinstance(traced, list):
        return [strided(one, value) for one, value in zip(result, traced, strict=False)]
    if not isinstance(result, torch.Tensor) or not isinstance(traced, Mapping):
        return result
    shape, stride = traced.get("shape"), traced.get("stride", [])
    result = _with_ones(result, shape or [])
    known = shape == [*result.shape] and all(type(one) is int and one > 0 for one in stride)
    if not known or len(stride) < result.dim() or stride == [*result.stride()]:
        return result
    return torch.empty_strided(result.shape, stride, dtype=result.dtype, device=result.device).copy_(result)


def _with_ones(tensor: torch.Tensor, traced: Sequence[int | str]) -> torch.Tensor:
    # dynamic code may leave a tensor without the dimensions of size 1 that its value has
    own, others = [size for size in tensor.shape if size != 1], [size for size in traced if size != 1]
    alike = len(own) == len(others) and all(
        a == b or isinstance(b, str) for a, b in zip(own, others, strict=True)
    )
    if tensor.dim() == len(traced) or not alike:
        return tensor
    sizes = iter(own)
    return tensor.reshape([1 if size == 1 else next(sizes) for size in traced])


def constant(written: Mapping[str, Any], device: torch.device) -> torch.Tensor:
    """[*] a tensor that a graph contains."""
    elements = decoded(written["elements"], {}, device)
    dtype: torch.dtype = getattr(torch, written["dtype"])
    return torch.tensor(elements, dtype=dtype, device=device).reshape(written["shape"])


def decoded(value: Any, values: Mapping[str, Any], device: torch.device) -> Any:
    """An argument of a node, with the values of the nodes that it refers to.

    Raises NoReference if the run does not contain it.
    """
    if isinstance(value, list):
        return [decoded(one, values, device) for one in value]
    if not isinstance(value, Mapping):
        return value
    match next(iter(value.items())):
        case "node", name:
            return values[name]
        case "float", text:
            return float(text)
        case "complex", (real, imaginary):
            return complex(real, imaginary)
        case (("dtype" | "layout" | "memory_format"), name):
            return getattr(torch, name)
        case "device", _:
            return device
        case "ellipsis", _:
            return ...
        case "tuple", elements:
            return tuple(decoded(elements, values, device))
        case "slice", (start, stop, step):
            return slice(*decoded([start, stop, step], values, device))
        case "mapping", pairs:
            return {decoded(key, values, device): decoded(one, values, device) for key, one in pairs}
        case _, text:
            raise NoReference(f"an argument that was not recorded: {text}")
