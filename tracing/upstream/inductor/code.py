"""Code that Inductor generates: its modules, their allocators, and the graphs that call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType, ModuleType

import torch
import triton
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache
from torch._inductor.output_code import CompiledFxGraph
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.cache_dir_utils import cache_dir, triton_cache_dir

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Wrapper, patched

__all__ = [
    "GENERATED",
    "allocators_replaced",
    "around_graphs",
    "around_loading",
    "around_packages",
    "cache_dir",
    "generated_modules",
    "is_generated",
    "kernel_folders",
    "launching_frame",
    "program_lines",
    "triton_helpers",
]


# The functions of Inductor's generated modules: straight-line code for fixed layouts, so the launching
# instruction, its scalars and one shape identify the layouts of a launch.
GENERATED = frozenset({"call", "partition_0"})
_WRAPPERS = 8  # frames of other tools that may lie between generated code and a launch


def launching_frame(frame: FrameType) -> FrameType:
    """The frame of generated code that makes a launch; `frame` itself if a user's code makes it.

    frame -- the caller of the launch: generated code, or another tool that wraps launches
    """
    caller: FrameType | None = frame
    for _ in range(_WRAPPERS):
        if caller is None:
            break
        if caller.f_code.co_name in GENERATED:
            return caller
        caller = caller.f_back
    return frame


def generated_modules() -> list[ModuleType]:
    """The modules that Inductor has generated and this process has loaded."""
    return list(PyCodeCache.modules)


def is_generated(file: str) -> bool:
    """Whether a file holds code that Inductor has generated."""
    return Path(file).is_relative_to(cache_dir())


def program_lines(file: str, line: int) -> list[tuple[str, int]]:
    """The lines of the program that a line of a generated wrapper was made from, the innermost first."""
    frames = PyCodeCache.stack_frames_for_code(file, line) or []
    return [(frame["filename"], frame["line"]) for frame in frames]


def kernel_folders() -> tuple[Path, ...]:
    """Where Triton and Inductor store compiled kernels of the current GPU, a folder for each hash."""
    return Path(triton.knobs.cache.dir), Path(triton_cache_dir(torch.cuda.current_device()))


def around_loading(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, a generated module that waits for its kernels calls `wrapper(original)`.

    The arguments are those of AsyncCompile.wait: compiler, globals of the module. Before it, kernels in the
    globals may be futures; after it they are functions.
    """
    return patched(AsyncCompile, "wait", wrapper)


def around_graphs(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each call of a compiled graph, the first argument, calls `wrapper(original)`."""
    return patched(CompiledFxGraph, "__call__", wrapper)


def has_cpp_wrapper(graph: CompiledFxGraph) -> bool:
    """True for a compiled graph whose kernels are launched by C++, and so by no hook."""
    return bool(graph.fx_kwargs.get("cpp_wrapper"))


@contextmanager
def around_packages(wrapper: Wrapper) -> Iterator[None]:
    """While active, each run of an AOTInductor package calls `wrapper(original)`."""
    # a class for each device that torch was built for, and the loader of packages
    members = vars(torch._C._aoti).values()
    runners = [member for member in members if isinstance(member, type) and hasattr(member, "run")]
    with ExitStack() as stack:
        for runner in runners:
            for name in {"run", "boxed_run"} & vars(runner).keys():
                stack.enter_context(patched(runner, name, wrapper))
        yield


@contextmanager
def allocators_replaced(names: tuple[str, ...], wrapper: Callable[[str], Wrapper]) -> Iterator[None]:
    """While active, generated code that is loaded allocates with `wrapper(name)(original)`.

    names -- as generated code calls them: "empty_strided_cuda"; names that this torch lacks are ignored

    Code that was loaded before keeps the allocators that it has: they are globals of its module.
    """
    guards = torch._C._dynamo.guards  # where each name begins with an underscore
    with ExitStack() as stack:
        for name in names:
            if hasattr(guards, f"_{name}"):
                stack.enter_context(patched(guards, f"_{name}", wrapper(name)))
        yield


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_parameters(AsyncCompile.wait, "scope")
    require_parameters(PyCodeCache.stack_frames_for_code, "path", "lineno")
    require_methods(CompiledFxGraph, "__call__")
    require(isinstance(PyCodeCache.modules, list), "the list of generated modules")
    require(vars(torch._C._aoti), "the runners of AOTInductor packages")
    require(Path(cache_dir()).is_absolute(), "the folder of generated code")
    made: list[str] = []
    name = "empty_strided_cpu"
    with allocators_replaced((name,), lambda name: lambda original: lambda *args: made.append(name)):
        vars(torch._C._dynamo.guards)[f"_{name}"]((2,), (1,), torch.float32)
    require(made == [name], "an allocator that generated code reads when it is loaded")
