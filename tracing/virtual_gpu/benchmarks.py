"""Benchmarks on a device that cannot measure: each runs once, and all times are equal.

- An autotuner's trial launches are compiled and checked against the target, not executed: the first
  configuration that fits wins.
- `triton.testing.do_bench` and its variants call their function once, and its launches are executed.
- `triton.testing.perf_report` runs each of its lines at the first size only: the others would give the same
  times. It needs neither pandas nor matplotlib, and writes no table.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import triton.testing

from tracing.upstream.patch import Method, patched, replaced
from tracing.upstream.triton.autotune import is_autotuner

MILLISECONDS = 1.0


class _Trial(threading.local):
    """Whether this thread's launches are those by which an autotuner tries configurations."""

    active = False


TRIAL = _Trial()


@contextmanager
def installed(is_virtual: Callable[[], bool]) -> Iterator[None]:
    """Inside, Triton's benchmarks measure nothing; `is_virtual` returns True if the active driver is ours."""
    with ExitStack() as stack:
        for name in [name for name in vars(triton.testing) if name.startswith("do_bench")]:
            stack.enter_context(patched(triton.testing, name, _once(is_virtual)))
        stack.enter_context(replaced(triton.testing.Mark, "run", _run))
        yield


def tried(call: Callable[[], object], *arguments: Any, quantiles: Any = None, **options: Any) -> Any:
    """Measure one configuration for Triton's autotuner; raises what launching it raises."""
    with replaced(TRIAL, "active", True):
        call()
    return _times(quantiles)


def _once(is_virtual: Callable[[], bool]) -> Callable[[Method], Method]:
    def wrapper(original: Method) -> Method:
        # an autotuner keeps what it measures with for good, also when the virtual GPU is gone
        def do_bench(call: Callable[[], object], *arguments: Any, **options: Any) -> Any:
            if not is_virtual():
                return original(call, *arguments, **options)
            if is_autotuner(sys._getframe(1)):
                return tried(call, quantiles=options.get("quantiles"))
            call()
            return _times(options.get("quantiles"), options.get("return_mode"))

        return do_bench

    return wrapper


def _times(quantiles: Any, return_mode: str | None = None) -> Any:
    if quantiles is not None:
        return [MILLISECONDS] * len(quantiles)
    return [MILLISECONDS] if return_mode == "all" else MILLISECONDS


def _run(mark: Any, *arguments: Any, **options: Any) -> None:
    known = {"show_plots", "print_data", "save_path", "return_df", "diff_col", "save_precision"}
    own = {name: value for name, value in options.items() if name not in known}
    single = isinstance(mark.benchmarks, triton.testing.Benchmark)
    for bench in [mark.benchmarks] if single else mark.benchmarks:
        sizes = list(bench.x_vals)
        note = f"{bench.plot_name}: run once, at the first of {len(sizes)} sizes"
        print(f"{note}: nothing is measured on a virtual GPU", file=sys.stderr)
        first = sizes[0] if isinstance(sizes[0], (list, tuple)) else [sizes[0]] * len(bench.x_names)
        for line in bench.line_vals:
            mark.fn(
                **dict(zip(bench.x_names, first, strict=True)), **{bench.line_arg: line}, **bench.args, **own
            )
