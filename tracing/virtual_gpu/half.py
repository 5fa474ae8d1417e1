"""Operators of torch in half precision, with float32 accumulation as in GPU libraries.

torch's CPU kernels add in float16 where CUDA's do not, for example in the gradients of a layer norm, and
compute matrix products of float16 at a hundredth of the speed of float32. A reference that a program computes
with torch would be less exact than the kernel under test.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tracing.upstream.torch.operator_schemas import implementations

_HALF = (torch.float16, torch.bfloat16)
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "dot")
_WITH_OUT = ("mm", "bmm", "addmm", "baddbmm", "addmv")


@contextmanager
def installed() -> Iterator[None]:
    """While active, these operators compute half-precision inputs in float32, on every thread."""
    with implementations("aten") as library:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that kernels of torch's own are replaced
            for name, made in _overrides():
                library.impl(name, made, "CPU", with_keyset=True, allow_override=True)
        yield


def _overrides() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in _PRODUCTS:
        kernel = _kernel(name)
        yield name, _wide(kernel, lambda first, *args: (first.dtype,))
        if name in _WITH_OUT:
            yield f"{name}.out", _into(kernel, _kernel(f"{name}.out"))
    # mean and rstd stay in float32, as a GPU keeps them for the gradients
    kernel = _kernel("native_layer_norm")
    yield "native_layer_norm", _wide(kernel, lambda x, *args: (x.dtype, torch.float32, torch.float32))
    kernel = _kernel("native_layer_norm_backward")
    yield "native_layer_norm_backward", _wide(kernel, _of_gradients)


def _kernel(name: str) -> Any:
    return torch.library.get_kernel(f"aten::{name}", "CPU")


def _of_gradients(_: Any, x: Any, shape: Any, mean: Any, rstd: Any, *parameters: Any) -> tuple[Any, ...]:
    return (x.dtype, *(getattr(one, "dtype", None) for one in parameters[:2]))


def _wide(kernel: Any, dtypes: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    # dtypes -- of the results, from the arguments
    def computed(keys: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(_is_half, args)):
            return kernel.call_boxed(keys, *args, **kwargs)
        result = kernel.call_boxed(keys, *map(_widened, args), **kwargs)
        if isinstance(result, torch.Tensor):
            return result.to(dtypes(*args)[0])
        pairs = zip(result, dtypes(*args), strict=True)
        return tuple(one.to(dtype) if isinstance(one, torch.Tensor) else one for one, dtype in pairs)

    return computed


def _into(kernel: Any, own: Any) -> Callable[..., Any]:
    def computed(keys: Any, *args: Any, out: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        if not any(map(_is_half, args)):
            own.call_boxed(keys, *args, out=out, **kwargs)
            return out
        result = kernel.call_boxed(keys, *map(_widened, args), **kwargs)
        if out.shape != result.shape:
            out.resize_(result.shape)
        return out.copy_(result)

    return computed


def _is_half(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _HALF


def _widened(value: Any) -> Any:
    return value.float() if _is_half(value) else value
