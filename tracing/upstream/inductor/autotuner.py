"""Inductor's autotuner: it compiles, measures and launches a generated kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

import triton
from torch._inductor.codegen.multi_kernel import MultiKernelCall
from torch._inductor.runtime.hints import HeuristicType
from torch._inductor.runtime.triton_heuristics import CachingAutotuner, GridExpr, config_from_dict

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Method, Wrapper, patched, replaced

__all__ = [
    "argument_names",
    "around_launches",
    "around_multi_kernel_trials",
    "around_precompile",
    "around_trials",
    "around_tuning",
    "config_from_dict",
    "grid_function",
    "kernel_name_of",
    "launcher_of",
    "not_measured",
    "reloaded_function",
    "trial_method",
]

# Each returns the fastest launcher, or leaves it as the only one. torch 2.11 lacks the third: pytorch #178936
# ("[Inductor] Chained sequential autotuning for combo kernels") added it.
_TUNERS = ("autotune_to_one_config", "coordinate_descent_tuning", "_combo_sequential_autotune")

_ONE_NAME = "triton_"  # torch._inductor.codegen.triton: Placeholder.KERNEL_NAME without unique_kernel_names


class Visibility(Protocol):
    """A thread-local counter: launches of the current thread are hidden while it is above 0."""

    hidden: int


class Launch(Protocol):
    """Makes a launch by calling `original(autotuner, *args, stream=stream, **kwargs)`, or makes another one.

    The frame that called the launch is two frames out of this call: sys._getframe(2).
    """

    def __call__(
        self, original: Method, autotuner: Any, args: tuple[Any, ...], stream: int, kwargs: dict[str, Any], /
    ) -> Any:
        """Return what the launch returned."""


def around_launches(
    launch: Launch, thread: Visibility, compiled: Callable[[Method, Method, Visibility], Method] | None = None
) -> AbstractContextManager[None]:
    """While active, `launch` makes each launch of a generated kernel, or of a user's in a compiled function.

    thread   -- a threading.local; a thread with `hidden` above 0 launches as if nothing was active
    compiled -- makes the method of one that calls `launch`, the original, and `thread`; None: the first is it

    The method is called for the normal, the static and the cached launcher. Launches by which Inductor
    measures, and those under TRITON_INTERPRET=1, are not passed to `launch`. Cost: 0.1 µs a launch.
    """

    def wrapper(original: Method) -> Method:
        def run(autotuner: Any, *args: Any, stream: int, benchmark_run: bool = False, **kwargs: Any) -> Any:
            if thread.hidden or benchmark_run or autotuner.triton_interpret:
                extra = {"benchmark_run": True} if benchmark_run else {}
                return original(autotuner, *args, stream=stream, **extra, **kwargs)
            return launch(original, autotuner, args, stream, kwargs)

        return run if compiled is None else compiled(run, original, thread)

    return patched(CachingAutotuner, "run", wrapper)


def around_trials(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, measuring one configuration calls `wrapper(original)`.

    The arguments are those of CachingAutotuner.bench: autotuner, launcher, ...; the result is milliseconds,
    infinite for a configuration that spills registers.
    """
    return patched(CachingAutotuner, "bench", wrapper)


def not_measured(passed_over: Callable[[str, int], None]) -> AbstractContextManager[None]:
    """While active, every configuration takes 1 ms, and none is launched: the first one wins.

    passed_over -- receives the name of a kernel under `@triton.autotune`, and how many of its configurations
                   are compiled and not launched
    """

    def bench(autotuner: Any, launcher: Any, *args: Any, **kwargs: Any) -> float:
        if autotuner.heuristic_type is HeuristicType.USER_AUTOTUNE:
            passed_over(autotuner.fn.__name__, len(autotuner.launchers) - 1)
        return 1.0

    return replaced(CachingAutotuner, "bench", bench)


def trial_method() -> object:
    """The current method that measures; compare it with `is`."""
    return vars(CachingAutotuner)["bench"]


def around_multi_kernel_trials(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, measuring the alternatives of a multi-kernel calls `wrapper(original)`."""
    return patched(MultiKernelCall, "benchmark_sub_kernels", wrapper)


def around_precompile(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, compiling the configurations of a kernel calls `wrapper(original)`.

    The first argument is the autotuner. It happens in this process and in compile workers; a worker leaves
    `autotuner.launchers` empty.
    """
    return patched(CachingAutotuner, "precompile", wrapper)


@contextmanager
def around_tuning(wrapper: Wrapper) -> Iterator[None]:
    """While active, each method that chooses a configuration by measuring calls `wrapper(original)`.

    The first argument is the autotuner; the result is the fastest launcher, or None if it is
    `autotuner.launchers[0]`.
    """
    with ExitStack() as stack:
        for name in _TUNERS:
            if name in vars(CachingAutotuner):
                stack.enter_context(patched(CachingAutotuner, name, wrapper))
        yield


def device_interface_is(interface: type) -> AbstractContextManager[None]:
    """While active, autotuners ask this class for the current device and stream."""
    return replaced(CachingAutotuner, "get_device_interface", lambda autotuner: interface)


def argument_names(launcher: Any) -> tuple[str, ...]:
    """The arguments of a launcher and of a launch, in order; a user's kernel has those of the grid, too."""
    code = launcher.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount - 1]  # the last one is the stream
    return names


def grid_function(autotuner: Any, launcher: Any) -> Callable[[Sequence[Any]], tuple[int, int, int]]:
    """Computes the grid on which a launcher launches its kernel, from the arguments of the launch."""
    expression = GridExpr.from_meta(autotuner.inductor_meta, launcher.config)
    grid = f"grid = {expression.x_grid}, {expression.y_grid}, {expression.z_grid}"
    code = compile("\n".join([*expression.prefix, grid]), "<grid>", "exec")
    names = argument_names(launcher)

    def evaluated(args: Sequence[Any]) -> tuple[int, int, int]:
        scope = dict(zip(names, args, strict=False))
        exec(code, scope)
        x, y, z = scope["grid"]
        return int(x), int(y), int(z)

    return evaluated


def kernel_name_of(autotuner: Any) -> str:
    """The name of a kernel; with `triton.unique_kernel_names = False` the functions of all have one."""
    name: str = autotuner.fn.__name__
    return str((autotuner.inductor_meta or {}).get("kernel_name") or name) if name == _ONE_NAME else name


def reloaded_function(autotuner: Any) -> Any:
    """The JITFunction of a kernel that a worker compiled, with the module that it was defined in.

    If there is no source to load, returns the function as the worker sent it: its `fn` is None.
    """
    reload = getattr(autotuner, "_reload_kernel", None)
    return reload().fn if reload else autotuner.fn


def launcher_of(
    autotuner: Any,
    function: Any,
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    grid: tuple[int, int, int],
) -> Callable[..., Any]:
    """The launcher that an autotuner would make of another function in one configuration.

    function  -- a JITFunction with the same arguments
    constants -- the values of its tl.constexpr arguments, by name
    options   -- of the compile, `num_warps` and `num_stages` among them
    grid      -- programs in x, y and z of every launch

    Cost: a compile.
    """
    twin = object.__new__(type(autotuner))  # copy.copy would pickle it
    twin.__dict__.update(vars(autotuner))
    twin.fn = function
    fixed = {"grid_type": "FixedGrid", "fixed_grid": [str(size) for size in grid]}
    twin.inductor_meta = {**autotuner.inductor_meta, **fixed}
    compile_options = type(autotuner)._create_compile_options
    twin._create_compile_options = lambda *args: {**compile_options(twin, *args), **options}
    warps_and_stages = {name: options[name] for name in ("num_warps", "num_stages")}
    config = triton.Config(dict(constants), **warps_and_stages)
    launcher: Callable[..., Any] = twin._precompile_config(config).make_launcher()
    return launcher


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(CachingAutotuner, "run", "bench", "precompile", "get_device_interface", *_TUNERS[:2])
    require_methods(CachingAutotuner, "_create_compile_options", "_precompile_config")
    grid = GridExpr.from_meta({"grid_type": "Grid1D"}, {"XBLOCK": 4})
    sizes = (grid.prefix, eval(str(grid.x_grid), {"xnumel": 5}), grid.y_grid, grid.z_grid)
    require(sizes == ([], 2, 1, 1), "a grid as lines of Python, and an expression for each size")
    require_methods(MultiKernelCall, "benchmark_sub_kernels")
    require_parameters(CachingAutotuner.run, "stream", "benchmark_run")
    require_parameters(CachingAutotuner.bench, "launcher")
    config = config_from_dict({"BLOCK": 8, "num_warps": 4, "num_stages": 2})
    require((config.kwargs, config.num_warps) == ({"BLOCK": 8}, 4), "a configuration made of a dictionary")
