"""How a launch is put together from the records that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from tracing.model import (
    Access,
    DigestLine,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    Signature,
    UserHash,
)

L = TypeVar("L", Access, DigestLine, LaunchTime, UserHash)


def join(
    kernel: Kernel,
    signature: Signature,
    line: LaunchLine,
    digests: DigestLine | None,
    finished: bool,
    time: LaunchTime | None,
    hashes: UserHash | None,
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
        line.site,
        line.thread,
    )


def in_step(lines: Iterator[L]) -> Callable[[int], L | None]:
    """Asked for each launch in order, it gives that launch's line, if it has one."""
    line = next(lines, None)

    def of(launch: int) -> L | None:
        nonlocal line
        while line is not None and line.launch < launch:
            line = next(lines, None)
        return line if line is not None and line.launch == launch else None

    return of
