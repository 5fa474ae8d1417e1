"""Launches of Triton kernels made otherwise than the program makes them.

A kernel is launched from two places: `JITFunction.run`, which is `fn[grid](...)`, autotuned or by hand, and
`CachingAutotuner.run`, for what Inductor generates and for the kernels that it finds in a compiled function.
At both a chosen launch is made with another function, constants, compiler options and grid on the same
arguments, or is executed by Triton's interpreter on copies of its tensors in host memory.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import torch
import triton
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from triton.runtime.jit import JITFunction

from tracing.model import Replacement
from tracing.patch import patched
from tracing.record import hooks
from tracing.record.remade import Remade, remade
from tracing.record.site import tensor_of
from tracing.record.sites import InductorSite

Chosen: TypeAlias = Mapping[str, Mapping[int, Replacement]]  # by kernel, and by which of its launches, from 0
Launch: TypeAlias = Callable[..., Any]


class Swaps:
    """While entered, the launches chosen last are made as their replacements say."""

    def __init__(self) -> None:
        self.launched: Counter[str] = Counter()  # launches of each kernel since the last choice
        self.refused = ""  # the kernel whose replacement failed
        self._chosen: Chosen = {}
        self._lock = threading.Lock()  # CUDA's backward launches from autograd's own threads
        self._remade: dict[str, Remade] = {}  # by the text of its module
        self._launchers: dict[tuple[int, Replacement], tuple[Any, Launch]] = {}  # by autotuner, which is held
        self._exit = ExitStack()

    def __enter__(self) -> Swaps:
        with ExitStack() as stack:
            stack.enter_context(hooks.trials_hidden())
            stack.enter_context(patched(JITFunction, "run", self._around_function))
            stack.enter_context(patched(CachingAutotuner, "run", self._around_inductor))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def choose(self, chosen: Chosen) -> None:
        """Replace these launches from now on, counted from here."""
        self._chosen = chosen
        self.launched.clear()
        self.refused = ""

    def _next(self, kernel: str) -> Replacement | None:
        with self._lock:
            number = self.launched[kernel]
            self.launched[kernel] += 1
        return self._chosen.get(kernel, {}).get(number)

    def _around_function(self, original: Launch) -> Launch:
        def run(function: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            found = self._next(function.__name__) if hooks.shown() and not warmup else None
            if found is None:
                return original(function, *args, grid=grid, warmup=warmup, **kwargs)
            with self._replacing(function.__name__):
                made = self._made(found.module)
                given = {**dict(zip(function.arg_names, args, strict=False)), **kwargs, **_constants(made)}
                if found.eager:
                    return _interpreted(made, given, found)
                options = {"num_ctas": 1, **made.options}
                return original(made.function, grid=found.grid, warmup=False, **{**given, **options})

        wrapped: Launch = torch._dynamo.disable(run)  # type: ignore[no-untyped-call]
        return wrapped

    def _around_inductor(self, original: Launch) -> Launch:
        def run(autotuner: Any, *args: Any, stream: int, benchmark_run: bool = False, **kwargs: Any) -> Any:
            trial = benchmark_run or autotuner.triton_interpret or not hooks.shown()
            found = None if trial else self._next(autotuner.fn.__name__)
            if found is None:
                extra = {"benchmark_run": True} if benchmark_run else {}
                return original(autotuner, *args, stream=stream, **extra, **kwargs)
            with self._replacing(autotuner.fn.__name__):
                made = self._made(found.module)
                if found.eager:  # behind the arguments of a user's kernel stands its grid
                    names = InductorSite(autotuner).names
                    return _interpreted(made, dict(zip(names, args, strict=False)), found)
                return self._launcher(autotuner, made, found)(*args, stream=stream, **kwargs)

        return run

    @contextmanager
    def _replacing(self, kernel: str) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.refused = kernel
            raise

    def _made(self, module: str) -> Remade:
        with self._lock:
            if module not in self._remade:
                self._remade[module] = self._exit.enter_context(remade(module))
            return self._remade[module]

    def _launcher(self, autotuner: Any, made: Remade, found: Replacement) -> Launch:
        key = id(autotuner), found
        if key not in self._launchers:
            self._launchers[key] = autotuner, _launcher(autotuner, made, found.grid)
        return self._launchers[key][1]


def _constants(made: Remade) -> dict[str, Any]:
    # without what Triton made a constant of because of its value
    declared = [parameter.name for parameter in made.function.params if parameter.is_constexpr]
    return {name: made.constants[name] for name in declared if name in made.constants}


def _launcher(autotuner: Any, made: Remade, grid: tuple[int, int, int]) -> Launch:
    # as the autotuner makes its own, of a copy that has this function and this configuration alone
    twin = object.__new__(type(autotuner))  # copy.copy would pickle it
    twin.__dict__.update(vars(autotuner))
    twin.fn = made.function
    fixed = {"grid_type": "FixedGrid", "fixed_grid": [str(size) for size in grid]}
    twin.inductor_meta = {**autotuner.inductor_meta, **fixed}
    compile_options = type(autotuner)._create_compile_options
    twin._create_compile_options = lambda *args: {**compile_options(twin, *args), **made.options}
    warps_and_stages = {name: made.options[name] for name in ("num_warps", "num_stages")}
    config = triton.Config(_constants(made), **warps_and_stages)
    launcher: Launch = twin._precompile_config(config).make_launcher()
    return launcher


def _interpreted(made: Remade, given: Mapping[str, Any], found: Replacement) -> None:
    defaults = {p.name: p.default for p in made.function.params if p.has_default}
    values = {**defaults, **{name: given[name] for name in made.function.arg_names if name in given}}
    with torch._C._DisableTorchDispatch(), _on_host(values) as copies:
        made.interpret(copies, found.grid)


@contextmanager
def _on_host(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    # The values with copies of their tensors in host memory; what was written there is copied back behind it.
    # Tensors that share a storage share its copy.
    storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    copies: dict[str, Any] = {}
    for name, value in values.items():
        tensor = tensor_of(value)
        if tensor is None:
            copies[name] = value
            continue
        if tensor is not value:
            raise TypeError(f"argument {name} is a {type(value).__name__}, of which no copy is made")
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in storages:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            storages[storage.data_ptr()] = whole, whole.to("cpu", copy=True)
        copy = storages[storage.data_ptr()][1].untyped_storage()
        layout = tensor.storage_offset(), tensor.shape, tensor.stride()
        copies[name] = torch.empty(0, dtype=tensor.dtype).set_(copy, *layout)
    yield copies
    for whole, host in storages.values():
        whole.copy_(host)
