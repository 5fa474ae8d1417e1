"""The launches and operators of a process in the order in which they ran, with what they read and wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.model import Digest, KernelLaunch, Operator, TensorMeta
from tracing.store import Run, rank_of

Kind: TypeAlias = Literal["nan", "inf", "any"]

# in the text of an operator's arguments; `nan=0.0` is an argument of nan_to_num
_NUMBER = re.compile(r"(?<![\w'])-?(nan|inf)j?(?![\w='])")
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
