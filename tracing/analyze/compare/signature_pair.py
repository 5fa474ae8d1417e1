"""Determines what to compare of two launches, once for each pair of signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tracing.digest.columns import Row
from tracing.errors import Problem
from tracing.model import Argument, Descriptor, Kernel, Signature, TensorMeta
from tracing.store import Run

Signatures: TypeAlias = Mapping[int, tuple[Kernel, Signature]]  # of one process, by number
_FUNCTIONS = "JITFunction(", "ConstexprFunction("  # constants that are functions begin with these


class SettingChange(NamedTuple):
    """One setting of a launch that differs."""

    name: str  # "grid", "num_warps", a constant or an argument
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One digest that two launches have in common."""

    side: Literal["before", "after"]
    position: int  # of the argument
    meta: TensorMeta
    writes: bool  # True: the kernel is declared to write it
    a: int  # position among the launch's digests in run a
    b: int
    before: tuple[int, int] | None = None  # of an output: the same, before the launch

    def bits(self, a: Row, b: Row) -> tuple[str, str]:
        """The digest in each run."""
        return a.bits(self.a, self.a + 1), b.bits(self.b, self.b + 1)

    def differs_by_writing(self, a: Row, b: Row) -> bool:
        """True if the launch wrote this argument: an input that changed is an output."""
        if self.writes or self.before is None:
            return self.writes
        was, is_now = self.before, self.bits(a, b)
        return (a.bits(was[0], was[0] + 1), b.bits(was[1], was[1] + 1)) != is_now

    def held_other_bits(self, a: Row, b: Row) -> bool:
        """True if the memory held different bits before the two launches, as far as it was digested."""
        was = self.before
        return was is not None and a.bits(was[0], was[0] + 1) != b.bits(was[1], was[1] + 1)


@dataclass(frozen=True, slots=True)
class SignaturePair:
    """A launch of run a and one of run b, without their bits and storages."""

    changes: tuple[SettingChange, ...]  # settings that differ
    slots: tuple[Slot, ...]
    addresses: tuple[str, ...] = ()  # arguments that hold addresses, which no two runs have in common

    def differing(self, a: Row, b: Row) -> tuple[Slot, ...]:
        """The digests that differ."""
        return tuple([s for s in self.slots if a.bits(s.a, s.a + 1) != b.bits(s.b, s.b + 1)])


def signature_of(row: Row, known: Signatures, run: Run) -> tuple[Kernel, Signature]:
    """The kernel of a launch, and how it is launched; raises Problem where the run has lost it.

    known -- the result of `run.signatures` for the launch's process
    """
    number = row.line.signature
    if number not in known:
        raise Problem(
            f"{run.path} is damaged: launch {row.line.index} has no signature {number}",
            "copy the run once more, or record it anew",
        )
    return known[number]


def signature_pair(
    a: Row, b: Row, one: tuple[Kernel, Signature], other: tuple[Kernel, Signature]
) -> SignaturePair:
    """What to compare of launches with these signatures; for different kernels, only that they differ."""
    same = one[0].name == other[0].name
    held = (
        arg.name for pair in zip(one[1].args, other[1].args, strict=False) for arg in pair if arg.addresses
    )
    return SignaturePair(
        tuple(_changes(*one, *other)),
        tuple(_slots(a, b, one[1], other[1])) if same else (),
        tuple(dict.fromkeys(held)),
    )


def launched_alike(a: tuple[Kernel, Signature], b: tuple[Kernel, Signature]) -> bool:
    """True if two launches have one configuration, and declare the same reads and writes."""
    roles = [[(arg.name, arg.declared) for arg in signature.args] for _, signature in (a, b)]
    return roles[0] == roles[1] and next(_changes(*a, *b), None) is None


def relevant(before: Sequence[int], after: Sequence[int], signature: Signature) -> list[bool]:
    """The relevant digests of a launch: those of its inputs, and all digests after it."""
    held = [_compared(signature.args[position]) for position in after]
    return [*(_compared(arg) and arg.reads for arg in map(signature.args.__getitem__, before)), *held]


def _compared(arg: Argument) -> bool:
    return not arg.addresses


def _slots(a: Row, b: Row, one: Signature, other: Signature) -> Iterator[Slot]:
    before = {position: n for n, position in enumerate(a.before)}
    before_b = {position: n for n, position in enumerate(b.before)}
    after_b = {position: n for n, position in enumerate(b.after, len(b.before))}
    for position, arg in enumerate(one.args):
        theirs = other.args[position] if position < len(other.args) else arg
        if arg.tensor is None or theirs.tensor is None or _contents(arg) != _contents(theirs):
            continue  # reported as a difference of the launch
        if arg.addresses or theirs.addresses:
            continue
        was = (before[position], before_b[position]) if position in before and position in before_b else None
        if was and arg.reads and theirs.reads:
            yield Slot("before", position, arg.tensor, False, *was)
        if position in a.after and position in after_b:
            n = len(a.before) + list(a.after).index(position)
            yield Slot("after", position, arg.tensor, arg.writes or theirs.writes, n, after_b[position], was)


def _contents(arg: Argument) -> object:
    return arg.tensor and (arg.tensor.dtype, arg.tensor.shape)


def _changes(kernel_a: Kernel, one: Signature, kernel_b: Kernel, other: Signature) -> Iterator[SettingChange]:
    a, b = _settings(kernel_a, one), _settings(kernel_b, other)
    addresses = {arg.name for signature in (one, other) for arg in signature.args if arg.addresses}
    for name in a | b:
        theirs, ours = a.get(name, "absent"), b.get(name, "absent")
        if theirs != ours and name not in addresses:
            yield SettingChange(name, theirs, ours)


def identities(known: Signatures) -> dict[int, tuple[tuple[str, str], ...]]:
    """The identity of each signature, by its number; equal for signatures of similar launches."""
    return {number: tuple(_settings(*one).items()) for number, one in known.items()}


def _settings(kernel: Kernel, signature: Signature) -> dict[str, str]:
    settings = {"kernel": kernel.name, "grid": str(signature.grid), **configuration_of(kernel)}
    return settings | {arg.name: _passed(arg) for arg in signature.args}


def configuration_of(kernel: Kernel) -> dict[str, str]:
    """The configuration of a kernel: its warps, stages and CTAs, and its constants."""
    own = {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, "num_ctas": kernel.num_ctas}
    return {**{name: str(value) for name, value in own.items()}, **constants_of(kernel)}


def constants_of(kernel: Kernel) -> dict[str, str]:
    """Its constants, without functions: these are compared as code."""
    return {name: text for name, text in kernel.constants.items() if not text.startswith(_FUNCTIONS)}


def _passed(arg: Argument) -> str:
    # Devices differ between machines whose runs are compared; layouts and values may not. As text, NaN equals
    # itself, and 0.0, -0.0, 0 and False are four values.
    tensor = arg.tensor
    if tensor is None:
        return repr(arg.value)
    layout = f"{tensor.dtype}{list(tensor.shape)} with strides {list(tensor.stride)}"
    one = arg.descriptor
    # block shapes are code; earlier versions recorded no descriptor
    usual = one is None or (one.shape, one.strides, one.padding) == (tensor.shape, tensor.stride, "zero")
    return layout if one is None or usual else f"{layout}, described as {_described(one)}"


def _described(one: Descriptor) -> str:
    return f"{list(one.shape)} with strides {list(one.strides)}, padded with {one.padding}"
