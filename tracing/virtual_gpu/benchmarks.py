"""Benchmarks on a device that cannot measure: each runs once, and all times are equal.

- An autotuner takes its first configuration that fits the target, after a trial launch that is compiled and
  not executed. It compiles no further configuration, unless launches are not executed at all.
- A multi-kernel of Inductor takes its first alternative.
- `triton.testing.do_bench` and its variants call their function once, and its launches are executed.
- `triton.testing.perf_report` runs each of its lines at the first size only: the others would give the same
  times. Launches that `do_bench` makes there are compiled and not executed: their sizes are those of a GPU.
  It needs neither pandas nor matplotlib, and writes no table.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import triton.testing

from tracing.interpreter import trials
from tracing.upstream.inductor import autotuner as inductor_autotuner
from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.triton import autotune as triton_autotuner

MILLISECONDS = 1.0
FIRST_IS_TAKEN = "the first one that fits is taken: nothing is measured on a virtual GPU"


@dataclass
class _Tuning:
    fitting: list[float] | None = None  # times of the configuration that the autotuner will take
    left_out: int = 0


class _Thread(threading.local):
    reporting = False
    tuning: _Tuning | None = None


_thread = _Thread()


@contextmanager
def installed(is_virtual: Callable[[], bool], *, execute: bool) -> Iterator[None]:
    """While active, Triton's benchmarks measure nothing, if `is_virtual` returns True for the active driver.

    execute -- False: autotuners compile every configuration
    """
    with ExitStack() as stack:
        for name in [name for name in vars(triton.testing) if name.startswith("do_bench")]:
            stack.enter_context(patched(triton.testing, name, _once(is_virtual)))
        stack.enter_context(replaced(triton.testing.Mark, "run", _run))
        stack.enter_context(inductor_autotuner.around_multi_kernel_trials(_equally_fast(is_virtual)))
        if execute:
            stack.enter_context(triton_autotuner.around_launches(_around_tuning(is_virtual)))
            stack.enter_context(triton_autotuner.around_trials(_first_that_fits))
        yield


def tried(call: Callable[[], object], *arguments: Any, quantiles: Any = None, **options: Any) -> Any:
    """Measure one configuration for Triton's autotuner; raises what launching it raises."""
    trials.tried(call)
    return _times(quantiles)


def _once(is_virtual: Callable[[], bool]) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        # an autotuner keeps its benchmark function for good, even after the virtual GPU has ended
        def do_bench(call: Callable[[], object], *arguments: Any, **options: Any) -> Any:
            if not is_virtual():
                return original(call, *arguments, **options)
            if triton_autotuner.is_autotuner(sys._getframe(1)):
                return tried(call, quantiles=options.get("quantiles"))
            if _thread.reporting:
                trials.tried(call)
            else:
                call()
            return _times(options.get("quantiles"), options.get("return_mode"))

        return do_bench

    return wrapper


def _equally_fast(is_virtual: Callable[[], bool]) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        def benchmark(multi_kernel: Any, *arguments: Any, **options: Any) -> Any:
            if not is_virtual():
                return original(multi_kernel, *arguments, **options)
            return [MILLISECONDS] * len(multi_kernel.kernels)

        return benchmark

    return wrapper


def _times(quantiles: Any, return_mode: str | None = None) -> Any:
    if quantiles is not None:
        return [MILLISECONDS] * len(quantiles)
    return [MILLISECONDS] if return_mode == "all" else MILLISECONDS


def _around_tuning(is_virtual: Callable[[], bool]) -> Callable[[Method], Method]:
    noted: set[str] = set()

    def wrapper(original: Method) -> Method:
        def run(autotuner: Any, *arguments: Any, **options: Any) -> Any:
            if len(autotuner.configs) < 2 or not is_virtual():
                return original(autotuner, *arguments, **options)
            tuning = _Tuning()
            outer, _thread.tuning = _thread.tuning, tuning  # `replaced` would change all threads
            try:
                result = original(autotuner, *arguments, **options)
            finally:
                _thread.tuning = outer
            name = autotuner.base_fn.__name__
            if tuning.left_out and name not in noted:
                noted.add(name)
                are = "is" if tuning.left_out == 1 else "are"
                note = f"{name}: {tuning.left_out} of its configurations {are} not compiled"
                print(f"tracing: {note}, {FIRST_IS_TAKEN}", file=sys.stderr)
            return result

        return run

    return wrapper


def _first_that_fits(original: Method) -> Method:
    def bench(autotuner: Any, *arguments: Any, **options: Any) -> Any:
        tuning = _thread.tuning
        if tuning is None or trials.wants_every_configuration():
            return original(autotuner, *arguments, **options)
        if tuning.fitting is not None:
            tuning.left_out += 1
            return tuning.fitting  # of equally fast configurations the first one wins
        times = original(autotuner, *arguments, **options)
        if math.isfinite(times[0]):
            tuning.fitting = times
        return times

    return bench


def _run(mark: Any, *arguments: Any, **options: Any) -> None:
    known = {"show_plots", "print_data", "save_path", "return_df", "diff_col", "save_precision"}
    own = {name: value for name, value in options.items() if name not in known}
    single = isinstance(mark.benchmarks, triton.testing.Benchmark)
    for bench in [mark.benchmarks] if single else mark.benchmarks:
        sizes = list(bench.x_vals)
        note = f"{bench.plot_name}: run once, at the first of {len(sizes)} sizes, its launches not executed"
        print(f"{note}: nothing is measured on a virtual GPU", file=sys.stderr)
        first = sizes[0] if isinstance(sizes[0], (list, tuple)) else [sizes[0]] * len(bench.x_names)
        values = dict(zip(bench.x_names, first, strict=True))
        _thread.reporting = True
        try:
            for line in bench.line_vals:
                mark.fn(**values, **{bench.line_arg: line}, **bench.args, **own)
        finally:
            _thread.reporting = False
