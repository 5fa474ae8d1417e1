"""The launches and operators of a process in the order in which they ran, with what they read and wrote."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.model import Digest, KernelLaunch, Operator, TensorMeta
from tracing.store import Run, rank_of

Kind: TypeAlias = Literal["nan", "inf", "any"]


@dataclass(frozen=True, slots=True)
class NonFiniteTensor:
    """A tensor that an event read or wrote, and how many of its elements are NaN or infinite."""

    name: str  # of the argument; of an operator "input 0", "output 0"
    position: int  # among the arguments of a launch, or the tensors on that side of an operator
    meta: TensorMeta
    storage: int | None
    digest: Digest | None
    writer: str | None = None  # the operator that wrote it last

    @property
    def elements(self) -> int:
        """Their number."""
        return math.prod(self.meta.shape)

    def bad(self, kind: Kind) -> bool:
        """True if the tensor holds such a value; False also if it has no digest."""
        if self.digest is None:
            return False
        counts = {"nan": self.digest.nan, "inf": self.digest.inf, "any": self.digest.nan + self.digest.inf}
        return counts[kind] > 0


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

    def bad_scalar(self, kind: Kind) -> bool:
        """True if a scalar argument of the kernel is NaN or infinite."""
        if not isinstance(self.source, KernelLaunch):
            words = self.source.arguments.replace("=", " ").replace(",", " ").split()
            return any(word in words for word in ("nan", "inf", "-inf"))
        values = [arg.value for arg in self.source.args if isinstance(arg.value, float)]
        nan, inf = any(one != one for one in values), any(abs(one) == float("inf") for one in values)
        return (nan and kind != "inf") or (inf and kind != "nan")


def data_events(run: Run, process: str) -> Iterator[DataEvent]:
    """Every launch and operator of one process; operators that only allocate are left out.

    Cost: some 40 µs a launch, most of it for digests.
    """
    # an operator that says "launch 3" ran when three launches had been made
    rank, join = rank_of(process), run.joiner(process)
    operators = run.operators(process)
    waiting = next(operators, None)
    for row in run.rows(process):
        while waiting is not None and waiting.launch <= row.line.index:
            yield from _operator(waiting, rank)
            waiting = next(operators, None)
        yield _launch(join.launch(row), rank)
    while waiting is not None:
        yield from _operator(waiting, rank)
        waiting = next(operators, None)


def _operator(one: Operator, rank: int) -> Iterable[DataEvent]:
    if one.allocates:  # what it "writes" is not initialised
        return ()
    sides = [
        tuple(
            NonFiniteTensor(f"{side} {n}", n, tensor.tensor, tensor.storage, tensor.digest)
            for n, tensor in enumerate(tensors)
        )
        for side, tensors in (("input", one.reads), ("output", one.writes))
    ]
    return (DataEvent(one, rank, sides[0], sides[1]),)


def _launch(launch: KernelLaunch, rank: int) -> DataEvent:
    reads, writes = [], []
    for position, arg in enumerate(launch.args):
        if arg.tensor is None:
            continue
        of_it = (arg.name, position, arg.tensor, arg.storage)
        if arg.reads:
            reads.append(NonFiniteTensor(*of_it, arg.before, arg.writer))
        if arg.writes:
            writes.append(NonFiniteTensor(*of_it, arg.after))
    return DataEvent(launch, rank, tuple(reads), tuple(writes))
