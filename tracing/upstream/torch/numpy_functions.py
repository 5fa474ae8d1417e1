"""The functions of numpy that a graph of Dynamo calls: those of torch._numpy, each wrapped for tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import torch
import torch._numpy
from torch._dynamo import utils

from tracing.upstream.contract import require
from tracing.upstream.torch.dynamo import forget_compiled

_MODULES: Mapping[str, ModuleType] = {
    "torch._numpy": torch._numpy,
    "torch._numpy.linalg": torch._numpy.linalg,
    "torch._numpy.fft": torch._numpy.fft,
}
_ARRAY, _OPERATOR = "torch._numpy.ndarray", "torch._numpy.operator"
_ATTRIBUTE = "torch._dynamo.utils.numpy_attr_wrapper"
_REFUSED = ("from_dlpack", "resize")  # a graph may come from an untrusted run
_ATTRIBUTES = ("T", "real", "imag")


def numpy_target(target: Any) -> str | None:
    """The name of what a node calls, "torch._numpy.linalg.norm"; None: no function of numpy.

    Dynamo gives a function, a method and an operator of one name the same name.
    """
    if isinstance(target, utils.numpy_method_wrapper):
        return f"{_ARRAY}.{target.method}"
    if isinstance(target, utils.numpy_operator_wrapper):
        return f"{_OPERATOR}.{target.op.__name__}"
    if not isinstance(target, utils.numpy_to_tensor_wrapper):
        return None
    known = (
        f"{owner}.{name}"
        for owner, module in _MODULES.items()
        for name, function in vars(module).items()
        if function is target.f
    )
    return next(known, f"{target.f.__module__}.{target.f.__name__}")


def indexes(target: Any) -> bool:
    """True for a function of numpy whose arguments are an array, an index, and perhaps a value."""
    return (numpy_target(target) or "").rpartition(".")[2].strip("_") in ("getitem", "setitem")


def numpy_function(target: str) -> Callable[..., Any] | None:
    """The function of a name that `numpy_target` gives; None: none that is known, or it draws numbers."""
    if target == _ATTRIBUTE:
        return _attribute
    module, _, name = target.rpartition(".")
    if name in _REFUSED:
        return None
    if module == _ARRAY:
        return utils.numpy_method_wrapper(name) if _is_method(name) else None
    if module == _OPERATOR:
        return utils.numpy_operator_wrapper(getattr(operator, name)) if name in _OPERATORS else None
    function: Any = getattr(_MODULES.get(module), name, None)
    scalar = isinstance(function, type) and issubclass(function, torch._numpy._dtypes.generic)
    usable = (scalar or isinstance(function, FunctionType)) and not name.startswith("_")
    return utils.numpy_to_tensor_wrapper(function) if usable else None


_OPERATORS = {
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "pos", "abs", "invert"),
    *("and_", "or_", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem"),
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"),
}


def _is_method(name: str) -> bool:
    hidden = name.startswith("_") and name not in ("__getitem__", "__setitem__")
    return not hidden and callable(getattr(torch._numpy._ndarray.ndarray, name, None))


def _attribute(value: Any, name: str) -> Any:
    if name not in _ATTRIBUTES:
        raise TypeError(f"the attribute {name}")
    return utils.numpy_attr_wrapper(value, name)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    import numpy as np

    targets: list[Any] = []

    def compiled(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        targets.extend(one.target for one in graph.graph.nodes if one.op == "call_function")
        return graph.forward

    def program(x: Any) -> Any:
        return (np.linalg.norm(np.exp(x) + 1, axis=0) * 2).reshape(2, 2).T

    forget_compiled()
    torch.compile(program, backend=compiled, fullgraph=True)(np.ones((3, 4), np.float32))
    forget_compiled()
    names = [numpy_target(one) or f"{one.__module__}.{one.__name__}" for one in targets]
    wanted = ["exp", "operator.add", "linalg.norm", "operator.mul", "ndarray.reshape"]
    require(
        names == [*(f"torch._numpy.{one}" for one in wanted), _ATTRIBUTE], "functions of numpy in a graph"
    )
    require(all(map(numpy_function, names)), f"the functions {names}")
