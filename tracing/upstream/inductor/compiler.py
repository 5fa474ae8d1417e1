"""Inductor's compiler: the compile of one graph, its worker processes, and its choice among kernels."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch._inductor import async_compile, compile_fx, config
from torch._inductor.compile_fx import _InProcessFxCompile
from torch._inductor.decomposition import fast_random_decomps
from torch._inductor.fx_passes import pad_mm
from torch._inductor.select_algorithm import AlgorithmSelectorCache, TritonTemplateCaller
from torch._inductor.virtualized import V

from tracing.upstream.contract import require, require_methods, require_parameters
from tracing.upstream.patch import Method, Wrapper, patched, replaced

_JOB = "_worker_compile_triton"  # the function of async_compile that a worker runs, in torch 2.11 to 2.15


def decompositions_known() -> bool:
    """True if this process has made the table of decompositions, which a program may then have changed."""
    return fast_random_decomps.cache_info().currsize > 0


def forget_decompositions() -> None:
    """Let the next compile see the decompositions that were registered since the first one."""
    fast_random_decomps.cache_clear()


def around_codegen(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each compile of a graph calls `wrapper(original)`. It may launch kernels as trials."""
    return patched(_InProcessFxCompile, "codegen_and_compile", wrapper)


def around_selection(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each choice among templates and libraries calls `wrapper(original)`.

    The arguments are: cache, name of the operation, choices, ...
    """
    return patched(AlgorithmSelectorCache, "__call__", wrapper)


def around_padding(wrapper: Wrapper) -> AbstractContextManager[None]:
    """While active, each comparison of a matrix product with a padded one calls `wrapper(original)`."""
    return patched(pad_mm, "is_padded_faster", wrapper)


_selection_measures = True


def selection_measures() -> bool:
    """False while `first_template_taken` is active."""
    return _selection_measures


@contextmanager
def first_template_taken() -> Iterator[None]:
    """While active, the first Triton template is taken, or else the first library: nothing is measured."""

    def wrapper(original: Method) -> Method:
        def select(cache: Any, name: str, choices: Sequence[Any], *args: Any, **options: Any) -> Any:
            templates = [choice for choice in choices if isinstance(choice, TritonTemplateCaller)]
            return original(cache, name, (templates or [*choices])[:1], *args, **options)

        return select

    with replaced(sys.modules[__name__], "_selection_measures", False), around_selection(wrapper):
        yield


def packages_of_cpp() -> AbstractContextManager[None]:
    """While active, AOTInductor generates C++ for tensors on the CPU: its Triton kernels would need a GPU."""

    def wrapper(original: Method) -> Method:
        def compile_package(*args: Any, **kwargs: Any) -> Any:
            with config.patch(cpu_backend="cpp"):
                return original(*args, **kwargs)

        return compile_package

    return patched(compile_fx, "compile_fx_aot", wrapper)


def without_cpp_wrapper(asked: Callable[[], None]) -> AbstractContextManager[None]:
    """While active, generated code is Python also where the program sets `cpp_wrapper`, but for AOTInductor.

    asked -- is called at each compile of code with a C++ wrapper
    """

    def wrapper(original: Method) -> Method:
        # it calls itself after it has applied the options of torch.compile
        def compile_graph(*args: Any, **kwargs: Any) -> Any:
            if not config.cpp_wrapper or V.aot_compilation:
                return original(*args, **kwargs)
            asked()
            with config.patch(cpp_wrapper=False):
                return original(*args, **kwargs)

        return compile_graph

    return patched(compile_fx, "compile_fx", wrapper)


@contextmanager
def worker_jobs(run: Callable[..., Any], *settings: Any) -> Iterator[bool]:
    """While active, compile workers call `run(*settings, job, *args)` for each kernel, not `job(*args)`.

    run, settings -- have to be picklable

    Gives False if this torch has no such job: then nothing is replaced.
    """
    job = getattr(async_compile, _JOB, None)
    if job is None:
        yield False
        return
    with replaced(async_compile, _JOB, functools.partial(run, *settings, job)):
        yield True


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(_InProcessFxCompile, "codegen_and_compile")
    require(hasattr(compile_fx, "compile_fx_aot"), "torch._inductor.compile_fx.compile_fx_aot")
    require_parameters(compile_fx.compile_fx, "config_patches")
    require(
        isinstance(V.aot_compilation, bool) and not config.cpp_wrapper, "no C++ wrapper, and no AOTInductor"
    )
    known = all(hasattr(fast_random_decomps, name) for name in ("cache_clear", "cache_info"))
    require(known, "fast_random_decomps() is cached")
    require_parameters(AlgorithmSelectorCache.__call__, "name", "choices")
    require_parameters(pad_mm.is_padded_faster, "ori_time", "pad_time")
    with worker_jobs(print) as wrapped:
        require(wrapped, f"torch._inductor.async_compile.{_JOB}")
