"""The launches and operators of a process in the order in which they ran, with what they read and wrote."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.model import Access, Digest, KernelArg, KernelLaunch, Operator, TensorMeta
from tracing.store import Run, rank_of

Kind: TypeAlias = Literal["nan", "inf", "any"]

# in the text of an operator's arguments; `nan=0.0` is an argument of nan_to_num
_NUMBER = re.compile(r"(?<![\w'])-?(nan|inf)j?(?![\w='])")
NonFiniteCounts: TypeAlias = tuple[int, int]  # of NaN and inf

# they do not read their first input if it counts zero times: it may be memory that nothing initialised
_SCALED = frozenset(f"aten::{name}" for name in ("addmm", "baddbmm", "addbmm", "addmv", "addr"))
_TIMES_ZERO = re.compile(r"(?<!\w)beta=-?(0|0\.0|False)(?=,|$)")

_NEXT_ARGUMENT = re.compile(r", (?=[A-Za-z_]\w*=)")


@dataclass(frozen=True, slots=True)
class NonFiniteTensor:
    """A tensor that an event read or wrote, and how many of its elements are NaN or infinite."""

    name: str  # of the argument; of an operator "input 0", "output 0"
    position: int  # among the arguments of a launch, or the tensors on that side of an operator
    meta: TensorMeta
    storage: int | None
    digest: Digest | None
    writer: str | None = None  # the operator that wrote it last
    untouched: NonFiniteCounts = (0, 0)  # of those in the digest, in elements that the event did not access
    exact: bool = True  # False: `untouched` is an upper limit
    before: Digest | None = None  # of a tensor that a launch writes
    # elements that nothing has ever written: the first, and how many
    unwritten: tuple[int, int] | None = None

    @property
    def elements(self) -> int:
        """Their number."""
        return math.prod(self.meta.shape)

    def bad(self, kind: Kind) -> bool:
        """True if the tensor holds such a value; False also if it has no digest."""
        return self.digest is not None and any(_of_kind((self.digest.nan, self.digest.inf), kind))

    def accessed(self, kind: Kind) -> bool | None:
        """True if the event read, or stored, such a value; None: the tensor may have held it before."""
        if self.digest is None or not self.bad(kind):
            return False
        counts = self.digest.nan - self.untouched[0], self.digest.inf - self.untouched[1]
        if any(_of_kind(counts, kind)):
            return True
        return False if self.exact else None


def _of_kind(counts: NonFiniteCounts, kind: Kind) -> NonFiniteCounts:
    return (0 if kind == "inf" else counts[0]), (0 if kind == "nan" else counts[1])


@dataclass(frozen=True, slots=True)
class DataEvent:
    """A launch or an operator, with what it read and wrote."""

    source: KernelLaunch | Operator
    rank: int
    reads: tuple[NonFiniteTensor, ...]
    writes: tuple[NonFiniteTensor, ...]

    @property
    def known(self) -> bool:
        """True if all tensors that it read and wrote have digests."""
        return all(one.digest is not None for one in (*self.reads, *self.writes))

    @property
    def name(self) -> str:
        """Of the kernel or the operator."""
        return self.source.kernel_name if isinstance(self.source, KernelLaunch) else self.source.name

    @property
    def launched(self) -> bool:
        """True for a launch of a kernel."""
        return isinstance(self.source, KernelLaunch)

    @property
    def allocates(self) -> bool:
        """True if it only allocates: nothing has written the tensors that it "writes"."""
        return isinstance(self.source, Operator) and self.source.allocates

    @property
    def made(self) -> set[int]:
        """Storages of the new memory that it wrote, or allocated, which may be where other tensors were."""
        written = {one.storage for one in self.writes if one.storage is not None}
        if self.allocates:
            return written
        name, _, overload = self.name.partition(".")
        # an operator with `out=` may write a part of a storage
        if (
            self.launched
            or not name.startswith("aten::")
            or name.endswith("_")
            or "out" in overload.split("_")
        ):
            return set()
        return written - {one.storage for one in self.reads}

    @property
    def from_python(self) -> bool:
        """True if it computes nothing, and only makes a value of the program a tensor."""
        return isinstance(self.source, Operator) and self.source.from_python

    def bad_numbers(self, kind: Kind) -> tuple[str, ...]:
        """The arguments that are no tensors and have such a value: `value=-inf`."""
        if isinstance(self.source, Operator):
            arguments = _NEXT_ARGUMENT.split(self.source.arguments)
        else:
            arguments = [
                f"{arg.name}={arg.value}" for arg in self.source.args if isinstance(arg.value, float)
            ]
        bad = ("nan", "inf") if kind == "any" else (kind,)
        return tuple(one for one in arguments if any(number in bad for number in _NUMBER.findall(one)))


def data_events(run: Run, process: str) -> Iterator[DataEvent]:
    """Every launch and operator of one process.

    Cost: some 40 µs a launch, most of it for digests; a pass over the recorded accesses if a launch reads or
    writes such a value.
    """
    # an operator that says "launch 3" ran when three launches had been made
    rank, join = rank_of(process), run.joiner(process)
    accesses = functools.cache(lambda: {one.launch: one for one in run.view(process, Access, Access)})
    # a written tensor without a digest before is overwritten as a whole
    overwrites = run.info.digests == "all"
    operators = run.operators(process)
    waiting = next(operators, None)
    for row in run.rows(process):
        while waiting is not None and waiting.launch <= row.line.index:
            yield _operator(waiting, rank)
            waiting = next(operators, None)
        yield _launch(join.launch(row), rank, accesses, overwrites)
    while waiting is not None:
        yield _operator(waiting, rank)
        waiting = next(operators, None)


def _operator(one: Operator, rank: int) -> DataEvent:
    sides = [
        tuple(
            NonFiniteTensor(f"{side} {n}", n, tensor.tensor, tensor.storage, tensor.digest)
            for n, tensor in enumerate(tensors)
        )
        for side, tensors in (("input", one.reads), ("output", one.writes))
    ]
    unread = one.name.partition(".")[0].removesuffix("_") in _SCALED and _TIMES_ZERO.search(one.arguments)
    return DataEvent(one, rank, sides[0][1:] if unread else sides[0], sides[1])


def _launch(
    launch: KernelLaunch, rank: int, accesses: Callable[[], dict[int, Access]], overwrites: bool
) -> DataEvent:
    digests = [one for arg in launch.args for one in (arg.before, arg.after) if one is not None]
    access = accesses().get(launch.index) if any(one.nan or one.inf for one in digests) else None
    reads, writes = [], []
    for position, arg in enumerate(launch.args):
        if arg.tensor is None:
            continue
        of_it = (arg.name, position, arg.tensor, arg.storage)
        if arg.reads:
            untouched = _unread(position, arg.before, access)
            reads.append(NonFiniteTensor(*of_it, arg.before, arg.writer, untouched))
        if arg.writes:
            left = _left(position, arg, access, overwrites)
            unwritten = access.unwritten.get(position) if access is not None else None
            writes.append(NonFiniteTensor(*of_it, arg.after, arg.writer, *left, arg.before, unwritten))
    return DataEvent(launch, rank, tuple(reads), tuple(writes))


def _unread(position: int, before: Digest | None, access: Access | None) -> NonFiniteCounts:
    # NaN and inf in elements that a launch did not read; without exact accesses it reads all
    if access is None or before is None:
        return 0, 0
    if position not in access.read:
        return before.nan, before.inf
    nan, inf = access.read_nonfinite.get(position, (before.nan, before.inf))
    return before.nan - nan, before.inf - inf


def _left(
    position: int, arg: KernelArg, access: Access | None, overwrites: bool
) -> tuple[NonFiniteCounts, bool]:
    # NaN and inf in elements that a launch did not write, and whether that is exact
    after, before = arg.after, arg.before
    if after is None:
        return (0, 0), True
    if access is not None:
        if position not in access.written:
            return (after.nan, after.inf), True
        if position not in access.partly:
            return (0, 0), True
        if position in access.written_nonfinite:
            nan, inf = access.written_nonfinite[position]
            return (after.nan - nan, after.inf - inf), True
    if before is None:
        return ((0, 0), True) if overwrites else ((after.nan, after.inf), False)
    untouched = min(before.nan, after.nan), min(before.inf, after.inf)
    return untouched, untouched == (0, 0)
