"""Put tensors that a program makes on "cuda" into host memory, and let them report the device "cuda:0".

One function mode below all others maps devices in calls: `torch.empty(n, device="cuda")`, `x.to("cuda:0")`,
`module.cuda()`, `torch.set_default_device("cuda")`. For the program, `x.device` and `x.is_cuda` of every
dense host tensor are those of a device tensor, because after an operator nothing shows which tensors the
program means to be on the host. torch's own code, and this project's, see the true device.

`x.cpu()` is a copy, as on a GPU, so later writes of a kernel do not change it. `x.cuda()` is a copy, too,
unless the program made `x` on the device.

Dynamo does not trace the mode: it is removed from Dynamo's view of the stack, and devices are mapped when
Dynamo adds a call to a graph.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.threads import around_new_threads
from tracing.upstream.torch.dynamo_tracing import (
    around_default_device,
    around_device_attributes,
    around_graph_calls,
    around_mode_stack,
    around_written_modes,
    function_modes,
)
from tracing.upstream.torch.optimizers import capturable_on
from tracing.upstream.torch.tensor_subclasses import tree_map_only
from tracing.virtual_gpu.limits import BeyondVirtualGpu
from tracing.virtual_gpu.program_code import program_code_placed
from tracing.virtual_gpu.querying_module import is_program, program_asks

HOST = torch.device("cpu")
DEVICE = torch.device("cuda", 0)
_PLAIN = (torch.Tensor, torch.nn.Parameter)  # not the fake ones that a compiler traces with
_TENSOR: Any = torch.Tensor
_GENERATOR = torch.Generator  # while this is active, torch's name refers to a replacement
_DEVICE_OF, _IS_CUDA, _IS_CPU = (getattr(_TENSOR, name).__get__ for name in ("device", "is_cuda", "is_cpu"))


def on_host(device: Any) -> Any:
    """The device of tensors that are requested on `device`; devices other than CUDA are unchanged.

    device -- a torch.device, its name, the number of a CUDA device, or None

    Raises RuntimeError, as CUDA does, for a second device.
    """
    if device is None:
        return None
    number = isinstance(device, int)
    wanted = torch.device("cuda", device) if number else torch.device(device)
    if wanted.type != "cuda":
        return device
    if wanted.index not in (None, 0):
        problem = f"invalid device ordinal {wanted.index}: the virtual GPU is one device, cuda:0"
        raise BeyondVirtualGpu(problem, "run the program with one device, or on a machine that has more")
    return HOST


@contextmanager
def installed() -> Iterator[None]:
    """While active, this thread and those that it starts can make tensors on "cuda"."""
    placement = Placement()
    with ExitStack() as stack:
        stack.enter_context(around_mode_stack(_without_placement))
        stack.enter_context(around_written_modes(_with_placement))
        stack.enter_context(around_graph_calls(_on_host_in_graphs))
        stack.enter_context(around_device_attributes(_traced_as_on_device))
        stack.enter_context(around_default_device(_with_device(1)))
        stack.enter_context(capturable_on(HOST.type))
        stack.enter_context(patched(torch, "load", _with_map_location))
        stack.enter_context(patched(torch.amp.autocast, "__init__", _autocast_on_host))
        stack.enter_context(replaced(torch, "Generator", _Generator))
        stack.enter_context(replaced(torch.Tensor, "record_stream", lambda x, stream: None))
        stack.enter_context(program_code_placed(placement))
        stack.enter_context(placement)
        stack.enter_context(around_new_threads(lambda: placement))
        yield


class Placement(TorchFunctionMode):
    """Maps the devices in calls of torch's functions."""

    def __init__(self) -> None:
        super().__init__()
        self._made: WeakIdKeyDictionary = WeakIdKeyDictionary()  # tensors that were asked for on the device
        self._special: Mapping[Any, Callable[..., Any]] = {
            _DEVICE_OF: lambda func, x: _seen(func, x, DEVICE),
            _IS_CUDA: lambda func, x: _seen(func, x, True),
            _IS_CPU: lambda func, x: _seen(func, x, False),
            torch.Tensor.get_device: lambda func, x: _seen(func, x, 0),
            torch.Tensor.to: self._to,
            torch.Tensor.cuda: self._cuda,
            torch.Tensor.cpu: self._cpu,
            torch.Tensor.pin_memory: lambda func, x, *args, **kwargs: x,
        }

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        special = self._special.get(func)
        if special is not None:
            return special(func, *args, **kwargs)
        if any(isinstance(value, torch.device) for value in args):
            args = [on_host(value) if isinstance(value, torch.device) else value for value in args]
        if kwargs.get("pin_memory"):  # all memory is the host's
            kwargs = {**kwargs, "pin_memory": False}
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        device = on_host(kwargs["device"])
        result = func(*args, **{**kwargs, "device": device})
        return self._asked_for(result) if device is HOST else result

    def _asked_for(self, tensor: Any) -> Any:
        if type(tensor) in _PLAIN:
            self._made[tensor] = True
        return tensor

    def _to(self, func: Method, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (str, int, torch.device)):
            kwargs = {**dict(zip(("device", "dtype", "non_blocking", "copy"), args, strict=False)), **kwargs}
            args = ()
        device = kwargs.get("device")
        if device is None:
            return func(x, *args, **kwargs)
        target = on_host(device)
        kwargs["device"] = target
        kwargs["copy"] = kwargs.get("copy") or self._leaves(x, target)
        result = func(x, *args, **kwargs)
        return self._asked_for(result) if target is HOST else result

    def _cuda(self, func: Method, x: torch.Tensor, device: Any = None, **kwargs: Any) -> Any:
        target = on_host(DEVICE if device is None else device)
        return self._asked_for(x.to(target, copy=True)) if self._leaves(x, target) else x

    def _cpu(self, func: Method, x: torch.Tensor, **kwargs: Any) -> Any:
        return x.to("cpu", copy=True) if self._leaves(x, "cpu") else func(x, **kwargs)

    def _leaves(self, x: torch.Tensor, target: Any) -> bool:
        # whether a GPU would copy the moved tensor; depth: this method, its caller, and the mode
        at_home = target is HOST and x in self._made
        moved = type(x) in _PLAIN and torch.device(target).type == "cpu" and not at_home
        return moved and program_asks(triton=False, depth=3)


def _seen(func: Method, x: torch.Tensor, answer: Any) -> Any:
    # depth: this function, the lambda above, and the mode
    lies_on_host = _DEVICE_OF(x).type == "cpu"
    return answer if lies_on_host and program_asks(triton=False, depth=3) else func(x)


# ---- calls that no function mode sees


def _with_device(position: int) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        def called(*args: Any, **kwargs: Any) -> Any:
            if "device" in kwargs:
                kwargs["device"] = on_host(kwargs["device"])
            else:
                args = (*args[:position], *map(on_host, args[position : position + 1]), *args[position + 1 :])
            return original(*args, **kwargs)

        return called

    return wrapper


def _with_map_location(original: Method) -> Method:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        named = isinstance(map_location, (str, torch.device))
        return original(f, on_host(map_location) if named else map_location, *args, **kwargs)

    return load


def _autocast_on_host(original: Method) -> Method:
    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.get_autocast_dtype("cuda")
        original(self, device_type, dtype, *args, **kwargs)

    return init


class _GeneratorType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _GENERATOR)

    def __call__(cls, device: Any = None) -> torch.Generator:
        return _GENERATOR(on_host(device) or HOST)


class _Generator(metaclass=_GeneratorType):
    """torch.Generator, of which one on "cuda" is the host's."""


# ---- Dynamo


def _without_placement(original: Method) -> Method:
    def init(self: Any, py_stack: Any, *args: Any, **kwargs: Any) -> None:
        modes = list(py_stack)
        original(self, modes, *args, **kwargs)
        pairs = zip(self.mode_stack, modes, strict=True)
        self.mode_stack = deque(traced for traced, mode in pairs if not isinstance(mode, Placement))

    return init


def _with_placement(original: Method) -> Method:
    def restore(modes: list[Any]) -> None:
        hidden = [one for one in function_modes() if isinstance(one, Placement)]
        original([*(one for one in hidden if one not in modes), *modes])

    return restore


def _traced_as_on_device(original: Method) -> Method:
    def method_attr(self: Any, tx: Any) -> Any:
        if self.device is None or self.device.type != "cpu":
            return original(self, tx)
        if not is_program(tx.f_globals.get("__name__") or "", triton=False):
            return original(self, tx)
        shown = copy.copy(self)
        shown.device = DEVICE
        return original(shown, tx)

    return method_attr


def _on_host_in_graphs(original: Method) -> Method:
    def create_proxy(
        tracer: Any, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **more: Any
    ) -> Any:
        if kind == "call_method" and target == "cuda":
            target, args, kwargs = "to", (args[0], DEVICE), {}
        args, kwargs = tree_map_only(torch.device, on_host, (args, kwargs))
        if kwargs and kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": on_host(kwargs["device"])}
        if kind == "call_method" and target == "to" and len(args) > 1 and isinstance(args[1], (str, int)):
            args = (args[0], on_host(args[1]), *args[2:])
        return original(tracer, kind, target, args, kwargs, *rest, **more)

    return create_proxy
