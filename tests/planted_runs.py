"""Runs on disk made of launches built by hand, for tests of what compares runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tracing import store
from tracing.digests import Columns, Digested, packed
from tracing.model import (
    SCHEMA,
    Argument,
    Digest,
    Environment,
    KernelLaunch,
    LaunchLine,
    Outcome,
    RunInfo,
    Signature,
)

HOST = Environment("3", "2", "3", "cpu", "cuda:90", "host", "platform", {})


def saved(
    folder: Path, launches: Sequence[KernelLaunch], *, case: str = "case", rank: int = 0, ended: bool = True
) -> store.Run:
    """A run of these launches; the words of their digests become digits."""
    writer = store.create(folder, RunInfo(SCHEMA, case, "/case.py", (), 0, store.now(), HOST), rank)
    add(writer, launches)
    if ended:
        writer.append(Outcome("passed", "the result agrees with eager"))
    writer.close()
    return store.Run(writer.path)


def add(writer: store.RunWriter, launches: Sequence[KernelLaunch]) -> None:
    for number, launch in enumerate(launches):
        writer.append(msgspec.structs.replace(launch.kernel, id=number))
        args = tuple(Argument(arg.name, arg.declared, arg.tensor, arg.value) for arg in launch.args)
        writer.append(Signature(number, number, launch.grid, launch.phase, launch.device, args))
        storages = tuple(arg.storage for arg in launch.args if arg.storage is not None)
        writers = {n: arg.writer for n, arg in enumerate(launch.args) if arg.writer}
        writer.append(LaunchLine(launch.index, number, launch.stream, storages, writers))
        if launch.finished:
            writer.extend(list(packed([_digested(launch)])))


def _digested(launch: KernelLaunch) -> Digested:
    before = [n for n, arg in enumerate(launch.args) if arg.before]
    after = [n for n, arg in enumerate(launch.args) if arg.after and (arg.writes or arg.modified)]
    found = [launch.args[n].before for n in before] + [launch.args[n].after for n in after]
    columns = Columns.of([word(digest) for digest in found if digest])
    return Digested(launch.index, columns, 0, before, after)


def word(digest: Digest) -> Digest:
    """A digest whose word became 32 digits."""
    return msgspec.structs.replace(digest, bits=digits(digest.bits))


def digits(bits: str) -> str:
    """The digits that stand for a word in a saved run."""
    return bits.encode().hex()[:32].ljust(32, "0")
