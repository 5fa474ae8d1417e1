"""Which kernels differ in which of several runs, in code and in what they wrote.

Runs whose code, or whose written values, of one kernel are equal have one number; the first run has 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.model import Kernel
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class KernelCell:
    """One kernel in one run."""

    launches: int
    code: int  # number of its code among the runs
    values: int | None  # number of what its launches wrote; None: no digests were recorded


@dataclass(frozen=True, slots=True)
class KernelOfRuns:
    """One kernel, by its name, in each run; None: the run does not launch it."""

    name: str
    cells: tuple[KernelCell | None, ...]

    @property
    def code_differs(self) -> bool:
        """True if the runs that launch it have different code."""
        return len({one.code for one in self.cells if one}) > 1

    @property
    def differs(self) -> bool:
        """True if the runs differ in its code, its values, the number of its launches, or lack it."""
        known = [(one.launches, one.code, one.values) if one else None for one in self.cells]
        return len(set(known)) > 1


@dataclass(slots=True)
class _Launched:
    # a kernel in one run, all its configurations together
    kernels: list[Kernel] = field(default_factory=list)
    launches: int = 0
    wrote: Any = None  # a hash of hashlib; None: no digest was recorded


def kernel_table(runs: Sequence[Run]) -> list[KernelOfRuns]:
    """The kernels of some runs, in the order in which the runs launch them; those that differ come first.

    Cost: 40 µs a launch, and 1 to 50 ms for each pair of kernels whose hashes differ.
    """
    launched = [_launched(run) for run in runs]
    codes: dict[tuple[int, int], KernelCodes] = {}

    def equal(a: int, b: int, name: str) -> bool:
        if (a, b) not in codes:
            codes[a, b] = KernelCodes(runs[a], runs[b])
        ours, theirs = launched[a][name].kernels, launched[b][name].kernels
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(codes[a, b].is_code(*pair) for pair in pairs)

    names = dict.fromkeys(name for one in launched for name in one)
    rows = [KernelOfRuns(name, tuple(_cells(name, launched, equal))) for name in names]
    return sorted(rows, key=lambda row: (not row.code_differs, not row.differs))


def _launched(run: Run) -> dict[str, _Launched]:
    known: dict[str, _Launched] = {}
    for launch in run.launches():
        one = known.setdefault(launch.kernel_name, _Launched())
        one.launches += 1
        if all(launch.kernel.hash != kernel.hash for kernel in one.kernels):
            one.kernels.append(launch.kernel)
        for arg in launch.args:
            if arg.after is not None and (arg.writes or arg.modified):
                one.wrote = one.wrote or hashlib.sha256()
                one.wrote.update(f"{arg.name} {arg.after.bits}\n".encode())
    return known


def _cells(
    name: str, launched: Sequence[dict[str, _Launched]], equal: Callable[[int, int, str], bool]
) -> Iterator[KernelCell | None]:
    codes: list[int] = []  # for each code, the first run that has it
    values: list[str] = []
    for number, run in enumerate(launched):
        one = run.get(name)
        if one is None:
            yield None
            continue
        code = next((n for n, first in enumerate(codes) if equal(first, number, name)), None)
        if code is None:
            code = len(codes)
            codes.append(number)
        wrote = one.wrote.hexdigest() if one.wrote else None
        if wrote is not None and wrote not in values:
            values.append(wrote)
        yield KernelCell(one.launches, code, None if wrote is None else values.index(wrote))
