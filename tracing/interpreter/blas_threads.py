"""Keep numpy's matrix products on one thread while a kernel is executed.

The blocks of a kernel are small. OpenBLAS shares even a product of 128 by 32 by 128 between all cores. Where
those are busy, waiting for them takes 3-37 ms; on one thread the product takes 0.1 ms.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

# as numpy's wheels name them since 1.26, before that, and distributions
_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")
_MAPPED = Path("/proc/self/maps")


class _Threads(NamedTuple):
    get: Callable[[], int]
    set: Callable[[int], None]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While active, OpenBLAS has one thread, in the whole process; another BLAS is left as it is."""
    before = [(one, one.get()) for one in _libraries()]
    for one, _ in before:
        one.set(1)
    try:
        yield
    finally:
        for one, count in before:
            one.set(count)


@cache
def _libraries() -> tuple[_Threads, ...]:
    # numpy's wheel contains one, and torch's another on aarch64
    paths = {line.split()[-1] for line in _MAPPED.read_text().splitlines() if "openblas" in line}
    return tuple(one for path in sorted(paths) if (one := _threads_of(ctypes.CDLL(path))) is not None)


def _threads_of(library: ctypes.CDLL) -> _Threads | None:
    names = next((name for name in _NAMES if hasattr(library, name.format("set"))), None)
    if names is None:
        return None
    return _Threads(library[names.format("get")], library[names.format("set")])
