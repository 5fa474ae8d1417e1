"""Dynamo's view of devices while it traces: function modes, attributes of tensors, calls in a graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch._dynamo import utils
from torch._dynamo.output_graph import SubgraphTracer
from torch._dynamo.variables.tensor import TensorVariable
from torch._dynamo.variables.torch_function import SymbolicTorchFunctionState
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched


def around_mode_stack(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, reading the stack of function modes calls `wrapper(original)`.

    The arguments are: state, stack, ...; the original sets `state.mode_stack`, with one entry for each mode.
    """
    return patched(SymbolicTorchFunctionState, "__init__", wrapper)


def around_written_modes(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, compiled code that leaves another stack of function modes calls `wrapper(original)`.

    The argument is the stack, innermost mode last.
    """
    return patched(utils, "set_torch_function_mode_stack", wrapper)


def function_modes() -> list[Any]:
    """The function modes of this thread, the innermost last."""
    modes: list[Any] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call, unused-ignore]
    return modes


def around_graph_calls(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, adding a call to a graph calls `wrapper(original)`.

    The arguments are: tracer, kind ("call_function", "call_method"), target, args, kwargs, ...
    """
    return patched(SubgraphTracer, "create_proxy", wrapper)


@contextmanager
def around_device_attributes(wrapper: Wrapper) -> Iterator[None]:
    """While active, tracing `x.device` and `x.is_cuda` calls `wrapper(original)`.

    The arguments are: variable, with a `device`, and the translator, with `f_globals` of the traced frame.
    """
    device = patched(TensorVariable, "method_attr_device", wrapper)
    is_cuda = patched(TensorVariable, "method_attr_is_cuda", wrapper)
    with device, is_cuda:
        yield


def around_default_device(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, `torch.set_default_device` and `with torch.device(...)` call `wrapper(original)`.

    The arguments are: context, device.
    """
    return patched(DeviceContext, "__init__", wrapper)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(SymbolicTorchFunctionState, "__init__")
    require_parameters(SymbolicTorchFunctionState.__init__, "py_stack")
    require(hasattr(utils, "set_torch_function_mode_stack"), "what compiled code sets function modes with")
    require(isinstance(function_modes(), list), "the stack of function modes")
    require_methods(SubgraphTracer, "create_proxy")
    require_parameters(SubgraphTracer.create_proxy, "kind", "target", "args", "kwargs")
    require_methods(TensorVariable, "method_attr_device", "method_attr_is_cuda")
    require_parameters(DeviceContext.__init__, "device")
