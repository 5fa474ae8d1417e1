"""What is to be compared of two launches, worked out once for each two ways in which a kernel is launched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tracing.digests import Row
from tracing.errors import Problem
from tracing.model import Argument, Kernel, Signature, TensorMeta
from tracing.store import Run

Signatures: TypeAlias = Mapping[int, tuple[Kernel, Signature]]  # of one process, by number


class Written(NamedTuple):
    """A launch that wrote a storage, without the launch: one is kept for each storage."""

    launch: int
    kernel_name: str
    argument: str
    meta: TensorMeta
    bits: str  # what it left; empty where no digest was taken
    outputs: tuple[str, ...]  # all that the launch may have written
    stream: int
    only_in_a: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """One digest that two launches have in common."""

    side: Literal["before", "after"]
    position: int  # of the argument
    tensor: int  # of the argument among those that are tensors
    tensor_b: int  # likewise, in run b
    meta: TensorMeta
    writes: bool  # whether the kernel is declared to write it
    a: int  # which of the launch's digests, in run a
    b: int
    before: tuple[int, int] | None = None  # of an output: likewise, before the launch

    def texts(self, a: Row, b: Row) -> tuple[str, str]:
        """The digest in each run."""
        return a.bits(self.a, self.a + 1), b.bits(self.b, self.b + 1)

    def differs_by_writing(self, a: Row, b: Row) -> bool:
        """Whether the launch wrote this: an input that was seen to change is an output."""
        if self.writes or self.before is None:
            return self.writes
        was, is_now = self.before, self.texts(a, b)
        return (a.bits(was[0], was[0] + 1), b.bits(was[1], was[1] + 1)) != is_now

    def held_other_bits(self, a: Row, b: Row) -> bool:
        """Whether what lay there before the launch differs, as far as it was digested."""
        was = self.before
        return was is not None and a.bits(was[0], was[0] + 1) != b.bits(was[1], was[1] + 1)


@dataclass(frozen=True, slots=True)
class Place:
    """An argument that a launch may write."""

    kernel_name: str
    argument: str
    tensor: int
    meta: TensorMeta
    after: int | None  # which of the launch's digests
    outputs: tuple[str, ...]  # the names of all such arguments

    def written(self, row: Row) -> Written:
        """That a launch wrote it."""
        bits = "" if self.after is None else row.bits(self.after, self.after + 1)
        return self.written_by(row.line.index, row.line.stream, bits)

    def written_by(self, launch: int, stream: int, bits: str) -> Written:
        """That this launch wrote it, on this stream, and left these bits."""
        return Written(launch, self.kernel_name, self.argument, self.meta, bits, self.outputs, stream)


@dataclass(frozen=True, slots=True)
class Way:
    """Two ways of launching, one of each run."""

    configuration: tuple[str, str] | None  # what differs between them; None: nothing
    slots: tuple[Slot, ...]
    writes: tuple[Place, ...]  # in run a

    def differing(self, a: Row, b: Row) -> tuple[Slot, ...]:
        """The digests that differ."""
        return tuple([s for s in self.slots if a.bits(s.a, s.a + 1) != b.bits(s.b, s.b + 1)])


def signature_of(row: Row, known: Signatures, run: Run) -> tuple[Kernel, Signature]:
    """The kernel of a launch, and how it is launched; raises Problem where the run has lost it.

    known -- what `run.signatures` gives for the launch's process
    """
    number = row.line.signature
    if number not in known:
        raise Problem(
            f"{run.path} is damaged: launch {row.line.index} has no signature {number}",
            "copy the run again, or record it again",
        )
    return known[number]


def way_of(a: Row, b: Row, one: tuple[Kernel, Signature], other: tuple[Kernel, Signature]) -> Way:
    """What is to be compared of launches like these two; of different kernels nothing but that."""
    same = one[0].name == other[0].name
    return Way(
        _configuration(*one, *other),
        tuple(_slots(a, b, one[1], other[1])) if same else (),
        tuple(places(a.before, a.after, *one)),
    )


def alike(a: tuple[Kernel, Signature], b: tuple[Kernel, Signature]) -> bool:
    """Whether two ways of launching are the same, and say the same of what is read and written."""
    roles = [[(arg.name, arg.declared) for arg in signature.args] for _, signature in (a, b)]
    return roles[0] == roles[1] and _configuration(*a, *b) is None


def relevant(before: Sequence[int], after: Sequence[int], signature: Signature) -> list[bool]:
    """Which of a launch's digests count: of what the kernel reads, and all that were taken after it."""
    reads = [_reads(signature.args[position]) for position in before]
    return [*reads, *(True for _ in after)]


def _reads(arg: Argument) -> bool:
    return arg.tensor is not None and arg.declared in ("in", "in_out", "unknown")


def _writes(arg: Argument) -> bool:
    return arg.tensor is not None and arg.declared in ("out", "in_out", "unknown")


def _slots(a: Row, b: Row, one: Signature, other: Signature) -> Iterator[Slot]:
    numbers, numbers_b = _tensor_numbers(one), _tensor_numbers(other)
    before = {position: n for n, position in enumerate(a.before)}
    before_b = {position: n for n, position in enumerate(b.before)}
    after_b = {position: n for n, position in enumerate(b.after, len(b.before))}
    for position, arg in enumerate(one.args):
        theirs = other.args[position] if position < len(other.args) else arg
        if arg.tensor is None or theirs.tensor is None or _contents(arg) != _contents(theirs):
            continue  # told as a difference of the launch
        place = (position, numbers[position], numbers_b.get(position, 0), arg.tensor)
        was = (before[position], before_b[position]) if position in before and position in before_b else None
        if was and _reads(arg) and _reads(theirs):
            yield Slot("before", *place, False, *was)
        if position in a.after and position in after_b:
            n = len(a.before) + list(a.after).index(position)
            yield Slot("after", *place, _writes(arg) or _writes(theirs), n, after_b[position], was)


def _contents(arg: Argument) -> object:
    return arg.tensor and (arg.tensor.dtype, arg.tensor.shape)


def places(
    before: Sequence[int], after: Sequence[int], kernel: Kernel, signature: Signature
) -> Iterator[Place]:
    """What a launch may write, whose digests are of the arguments at these positions."""
    number = _tensor_numbers(signature)
    digests = {position: n for n, position in enumerate(after, len(before))}
    outputs = tuple(arg.name for arg in signature.args if _writes(arg))
    for position, arg in enumerate(signature.args):
        if arg.tensor is not None and _writes(arg):
            yield Place(kernel.name, arg.name, number[position], arg.tensor, digests.get(position), outputs)


def _tensor_numbers(signature: Signature) -> dict[int, int]:
    tensors = [position for position, arg in enumerate(signature.args) if arg.tensor is not None]
    return {position: n for n, position in enumerate(tensors)}


def _configuration(
    kernel_a: Kernel, one: Signature, kernel_b: Kernel, other: Signature
) -> tuple[str, str] | None:
    a, b = _facts(kernel_a, one), _facts(kernel_b, other)
    different = [name for name in a | b if a.get(name) != b.get(name)]
    if not different:
        return None
    texts = [", ".join(f"{name}={facts.get(name, 'absent')}" for name in different) for facts in (a, b)]
    return texts[0], texts[1]


def _facts(kernel: Kernel, signature: Signature) -> dict[str, object]:
    facts = {"kernel": kernel.name, "grid": signature.grid, **configuration_of(kernel)}
    return facts | {arg.name: _passed(arg) for arg in signature.args}


def configuration_of(kernel: Kernel) -> dict[str, object]:
    """What a kernel was compiled with: its warps, stages and CTAs, and its constants."""
    own = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "num_ctas": kernel.num_ctas}
    return {**own, **kernel.constants}


def _passed(arg: Argument) -> object:
    # devices differ between machines whose runs are compared; layouts and values may not
    tensor = arg.tensor
    return (tensor.dtype, tensor.shape, tensor.stride) if tensor else arg.value
