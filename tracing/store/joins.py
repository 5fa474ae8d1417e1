"""How a launch is put together from the records that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tracing.model import (
    CallSite,
    Digest,
    DigestLine,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    Operator,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    OperatorTensor,
    Signature,
    TensorMeta,
    UserHash,
)

L = TypeVar("L")


def join(
    kernel: Kernel,
    signature: Signature,
    line: LaunchLine,
    digests: DigestLine | None,
    finished: bool,
    time: LaunchTime | None = None,
    hashes: UserHash | None = None,
    site: CallSite | None = None,
) -> KernelLaunch:
    """One launch; a tensor without a digest behind the launch was left as it was found."""
    storages = iter(line.storages)
    before = digests.before if digests else {}
    after = digests.after if digests else {}
    args = tuple(
        KernelArg(
            argument.name,
            argument.declared,
            argument.tensor,
            next(storages, None) if argument.tensor else None,
            argument.value,
            before.get(position),
            after.get(position, before.get(position)),
            line.writers.get(position),
            argument.addresses,
        )
        for position, argument in enumerate(signature.args)
    )
    return KernelLaunch(
        line.index,
        kernel,
        signature.grid,
        line.stream,
        signature.device,
        signature.phase,
        args,
        finished,
        time,
        hashes,
        site,
        line.thread,
    )


def join_operator(
    signature: OperatorSignature, call: OperatorCall, digests: OperatorDigests | None, site: CallSite | None
) -> Operator:
    """One call of an operator; raises ValueError if its parts do not fit each other."""
    count = len(signature.reads)
    return Operator(
        call.index,
        call.launch,
        signature.name,
        signature.arguments,
        _tensors(signature.reads, call.storages[:count], digests.before if digests else ()),
        _tensors(signature.writes, call.storages[count:], digests.after if digests else ()),
        signature.allocates,
        signature.random,
        site,
        call.thread,
    )


def _tensors(
    metas: Sequence[TensorMeta], storages: Sequence[int], digests: Sequence[Digest]
) -> tuple[OperatorTensor, ...]:
    taken = [digest if digest.bits else None for digest in digests] or [None] * len(metas)
    return tuple(OperatorTensor(*facts) for facts in zip(metas, storages, taken, strict=True))


def in_step(lines: Iterator[L], of: Callable[[L], int]) -> Callable[[int], L | None]:
    """Asked for each launch or operator in order, it gives that one's line, if it has one.

    of -- the number of a line's launch or operator
    """
    line = next(lines, None)

    def found(number: int) -> L | None:
        nonlocal line
        while line is not None and of(line) < number:
            line = next(lines, None)
        return line if line is not None and of(line) == number else None

    return found
