"""Replaces chosen launches of Triton kernels while a program runs.

Two functions launch kernels: `JITFunction.run`, which is `fn[grid](...)`, autotuned or by hand, and
`CachingAutotuner.run`, for kernels that Inductor generates or compiles with the user's function. In both, a
chosen launch is made with another function, other constants, compiler options and grid on the same arguments,
or is executed by Triton's interpreter on copies of its tensors in host memory.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch

from tracing.errors import Problem
from tracing.interpreter import compiles_wait
from tracing.interpreter.call_arguments import bound
from tracing.launch import hooks
from tracing.launch.launch_site import Grid, tensor_of
from tracing.launch.python_launch_sites import InductorSite
from tracing.model import Replacement
from tracing.replay.loaded_kernel import Arguments, LoadedKernel, load_kernel
from tracing.upstream.inductor.autotuner import kernel_name_of, launcher_of
from tracing.upstream.torch.dispatch_modes import dispatch_disabled
from tracing.upstream.torch.dynamo import untraced
from tracing.upstream.triton.jit import JITFunction, around_launches, source_of

Chosen: TypeAlias = Mapping[str, Mapping[int, Replacement]]  # by kernel, and by which of its launches, from 0
LaunchFunction: TypeAlias = Callable[..., Any]


class Swaps:
    """While entered, the chosen launches are replaced."""

    def __init__(self) -> None:
        self.launched: Counter[str] = Counter()  # launches of each kernel since the last choice
        self.refused = ""  # the kernel whose replacement failed
        self._chosen: Chosen = {}
        self._lock = threading.Lock()  # CUDA's backward launches from autograd's own threads
        self._loaded: dict[str, LoadedKernel] = {}  # by the text of its module
        self._launchers: dict[
            tuple[int, Replacement], tuple[Any, LaunchFunction]
        ] = {}  # by autotuner, which is held
        self._exit = ExitStack()

    def __enter__(self) -> Swaps:
        with ExitStack() as stack:
            stack.enter_context(hooks.trials_hidden())
            stack.enter_context(compiles_wait())  # an eager launch may meet a compile of another thread
            stack.enter_context(around_launches(self._around_function))
            stack.enter_context(hooks.around_inductor_launches(self._inductor_launch))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def choose(self, chosen: Chosen) -> None:
        """Replace these launches from now on; launches are counted from this call."""
        self._chosen = chosen
        self.launched.clear()
        self.refused = ""

    def _next(self, kernel: str) -> Replacement | None:
        with self._lock:
            number = self.launched[kernel]
            self.launched[kernel] += 1
        return self._chosen.get(kernel, {}).get(number)

    def _around_function(self, original: LaunchFunction) -> LaunchFunction:
        def run(function: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            replacement = self._next(function.__name__) if hooks.shown() and not warmup else None
            if replacement is None:
                return original(function, *args, grid=grid, warmup=warmup, **kwargs)
            with self._replacing(function.__name__):
                given, options = _given(function, args, kwargs)
                _require_own(replacement, function, _evaluated(function, grid, given))
                kernel = self._kernel(replacement.module)
                given |= _constants(kernel)
                if replacement.eager:
                    return _interpreted(kernel, given, replacement)
                options = {"num_ctas": 1, **options, **kernel.options}
                call = bound(kernel.function.fn, given)
                fixed = {"grid": replacement.grid, "warmup": False}
                return original(kernel.function, *call.args, **call.kwargs, **options, **fixed)

        return untraced(run)

    def _inductor_launch(
        self,
        original: LaunchFunction,
        autotuner: Any,
        args: tuple[Any, ...],
        stream: int,
        kwargs: dict[str, Any],
        /,
    ) -> Any:
        kernel_name = kernel_name_of(autotuner)
        replacement = self._next(kernel_name)
        if replacement is None:
            return original(autotuner, *args, stream=stream, **kwargs)
        with self._replacing(kernel_name):
            site = InductorSite(autotuner)
            _require_own(replacement, autotuner.fn, _own_grid(site, args))
            kernel = self._kernel(replacement.module)
            if replacement.eager:
                return _interpreted(kernel, dict(zip(site.names, args, strict=False)), replacement)
            return self._launcher(autotuner, kernel, replacement)(*args, stream=stream, **kwargs)

    @contextmanager
    def _replacing(self, kernel: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.refused = kernel
            raise

    def _kernel(self, module: str) -> LoadedKernel:
        with self._lock:
            if module not in self._loaded:
                self._loaded[module] = self._exit.enter_context(load_kernel(module))
            return self._loaded[module]

    def _launcher(self, autotuner: Any, kernel: LoadedKernel, replacement: Replacement) -> LaunchFunction:
        key = id(autotuner), replacement
        if key not in self._launchers:
            made = launcher_of(
                autotuner, kernel.function, _constants(kernel), kernel.options, replacement.grid
            )
            self._launchers[key] = autotuner, made
        return self._launchers[key][1]


def _own_grid(site: InductorSite, args: Sequence[Any]) -> Grid | None:
    # None: an autotuner has not chosen yet
    if len(args) > site.count:  # the grid of a user's kernel follows its arguments
        return site.trailing_grid(args)
    return site.grid(args) if site.settled else None


def _given(
    function: JITFunction[Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    # the arguments of a launch by parameter, and the compiler options
    own = {name: value for name, value in kwargs.items() if name in function.arg_names}
    options = {name: value for name, value in kwargs.items() if name not in own}
    return dict(inspect.signature(function.fn).bind_partial(*args, **own).arguments), options


def _evaluated(function: JITFunction[Any], grid: Any, given: Mapping[str, object]) -> Grid:
    if callable(grid):
        grid = grid({p.name: p.default for p in function.params if p.has_default} | dict(given))
    x, y, z = (*grid, 1, 1)[:3]
    return int(x), int(y), int(z)


def _require_own(replacement: Replacement, function: Any, grid: Grid | None) -> None:
    # the n-th launch of a kernel need not be the one that was recorded: the case may have been edited since
    source = source_of(function)
    if replacement.own_source and source and source != replacement.own_source:
        raise Problem("executed here, its source differs from the recorded one")
    if grid not in (None, replacement.own_grid):
        raise Problem(f"executed here, it has the grid {grid}, and {replacement.own_grid} was recorded")


def _constants(kernel: LoadedKernel) -> dict[str, object]:
    # without the arguments that Triton made constants because of their values
    declared = [parameter.name for parameter in kernel.function.params if parameter.is_constexpr]
    return {name: kernel.constants[name] for name in declared if name in kernel.constants}


def _interpreted(kernel: LoadedKernel, given: Arguments, replacement: Replacement) -> None:
    defaults = {p.name: p.default for p in kernel.function.params if p.has_default}
    values = {**defaults, **{name: given[name] for name in kernel.function.arg_names if name in given}}
    with dispatch_disabled(), _on_host(values) as copies:
        kernel.interpret(copies, replacement.grid)


@contextmanager
def _on_host(values: Arguments) -> Iterator[Arguments]:
    # The values with copies of their tensors in host memory; results are copied back.
    # Tensors that share a storage share its copy.
    storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def copied(name: str, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(copied(f"{name}.{i}", member) for i, member in enumerate(value))
        tensor = tensor_of(value)
        if tensor is None:
            return value
        if tensor is not value:
            raise TypeError(f"argument {name} is a {type(value).__name__}, of which no copy is made")
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in storages:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            storages[storage.data_ptr()] = whole, whole.to("cpu", copy=True)
        copy = storages[storage.data_ptr()][1].untyped_storage()
        layout = tensor.storage_offset(), tensor.shape, tensor.stride()
        return torch.empty(0, dtype=tensor.dtype).set_(copy, *layout)

    yield {name: copied(name, value) for name, value in values.items()}
    for whole, host in storages.values():
        whole.copy_(host)
