"""The functions and methods of torch that a graph of Dynamo calls, by the names that its nodes have."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional
from torch._functorch import eager_transforms, predispatch
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from tracing.upstream.contract import require
from tracing.upstream.torch.dynamo import called_functions
from tracing.upstream.torch.numpy_functions import numpy_function

_FUNCTIONS: Mapping[str, Any] = {
    "_operator": operator,
    "math": math,
    "torch": torch._C._VariableFunctions,  # of tensors: no function that loads, saves or compiles
    "torch.functional": torch.functional,
    "torch.nn.functional": torch.nn.functional,
    "torch._C._nn": torch._C._nn,
    "torch._C._linalg": torch._C._linalg,  # type: ignore[attr-defined]
    "torch._C._special": torch._C._special,  # type: ignore[attr-defined]
    "torch._C._fft": torch._C._fft,  # type: ignore[attr-defined]
    "torch._functorch.predispatch": predispatch,  # of vmap and jvp
    "torch._ops.aten": torch.ops.aten,  # attributes of tensors, since torch 2.15
}
_GRAD_LEVEL = "torch._C._functorch._grad_increment_nesting"
_AUTOCAST = "torch.amp.autocast_mode"
_IGNORED = (  # no result depends on it
    "torch._C._log_api_usage_once",
    "torch.nn.attention._backend_from_string",
    "torch.nn.attention._sdpa_kernel",  # which kernel computes attention
    "torch.autograd.grad_mode._enter_inference_mode",
    "torch.autograd.grad_mode._exit_inference_mode",
)
# names of functions that reach any other function, open files, or need what a recorded graph has not
_REFUSED = {
    "attrgetter", "call", "itemgetter", "methodcaller", "from_file", "from_numpy", "frombuffer",
    "apply_", "map_", "map2_", "backward", "numpy", "set_", "resize_", "resize_as_", "data_ptr",
}  # fmt: skip
_ATTRIBUTES = ("T", "H", "mT", "mH", "real", "imag", "shape", "dtype", "ndim", "device")


def traced_function(target: str) -> Callable[..., Any] | None:
    """The function that a node calls, "torch.nn.functional.gelu"; None: none that is known."""
    if target in _IGNORED:
        return lambda *arguments: None
    if target in _BY_NAME:
        return _BY_NAME[target]
    module, _, name = target.rpartition(".")
    if name in _REFUSED:
        return None
    if module == _AUTOCAST and name in ("_enter_autocast", "_exit_autocast"):
        return _named(torch.amp.autocast_mode, name)
    if module == "torch._tensor":
        return traced_method(name)
    if module == "torch" and "sym_" in name:
        return _named(torch, name)
    owner = _FUNCTIONS.get(module)
    return _named(owner, name) if owner is not None else numpy_function(target)


def traced_method(name: str) -> Callable[..., Any] | None:
    """The method of a tensor that a node calls; None: none that is known."""
    hidden = name.startswith("_") and not name.startswith("__")
    return None if hidden or name in _REFUSED else _named(torch.Tensor, name)


def differentiates(target: str) -> bool:
    """True for the function by which torch.func enters a level of grad or vjp, which compute in grad mode."""
    return target == _GRAD_LEVEL


def _named(owner: Any, name: str) -> Callable[..., Any] | None:
    function = getattr(owner, name, None)
    usable = callable(function) and not isinstance(function, (type, ModuleType))
    return function if usable else None


def _attribute(value: Any, name: str) -> Any:
    if name not in _ATTRIBUTES:
        raise TypeError(f"the attribute {name}")
    return getattr(value, name)


_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "builtins.getattr": _attribute,
    "torch.Size": torch.Size,
    "torch._C._set_grad_enabled": torch.set_grad_enabled,
    "torch._C._autograd._get_data_attr": lambda tensor: tensor.data,
    # of torch.func
    _GRAD_LEVEL: torch._C._functorch._grad_increment_nesting,
    "torch._C._functorch._grad_decrement_nesting": torch._C._functorch._grad_decrement_nesting,
    "torch._C._functorch._wrap_for_grad": torch._C._functorch._wrap_for_grad,
    "torch._C._functorch.set_inplace_requires_grad_allowed": (
        torch._C._functorch.set_inplace_requires_grad_allowed
    ),
    "torch._C._autograd._saved_tensors_hooks_disable": torch._C._autograd._saved_tensors_hooks_disable,
    "torch._C._autograd._saved_tensors_hooks_enable": torch._C._autograd._saved_tensors_hooks_enable,
    "torch._C._set_fwd_grad_enabled": torch._C._set_fwd_grad_enabled,
    "torch._functorch.eager_transforms._autograd_grad": eager_transforms._autograd_grad,
    "torch._functorch.eager_transforms._set_tensor_requires_grad": eager_transforms._set_tensor_requires_grad,
    "torch.autograd.forward_ad._maybe_load_decompositions": forward_ad._maybe_load_decompositions,
    # which torch 2.11 does not wrap in functions of predispatch
    "torch._C._functorch._unwrap_for_grad": torch._C._functorch._unwrap_for_grad,
    "torch._C._functorch._jvp_increment_nesting": torch._C._functorch._jvp_increment_nesting,
    "torch._C._functorch._jvp_decrement_nesting": torch._C._functorch._jvp_decrement_nesting,
    "torch._C._enter_dual_level": torch._C._enter_dual_level,
    "torch._C._exit_dual_level": torch._C._exit_dual_level,
}


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""

    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.nn.functional.gelu(torch.special.erf(torch.sin(x)) + 1)
        z = torch.nn.functional.softmax(torch.linalg.norm(y) + torch.fft.fft(x).real, 0)
        torch.func.jvp(torch.func.grad(torch.sum), (z,), (z,))
        with sdpa_kernel(SDPBackend.MATH):
            z = z + torch.cos(z)
        return torch.vmap(torch.sum)(z.T)

    names = called_functions(program, torch.ones(2, 2))
    require(len(names) > 6, "a graph of functions")
    unknown = [one for one in names if traced_function(one) is None]
    require(not unknown, f"the functions {unknown}")
