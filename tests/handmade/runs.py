"""Runs on disk, made of hand-built launches, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from handmade.records import META

from tracing import store
from tracing.digest.columns import Columns, Digested, packed
from tracing.model import (
    SCHEMA,
    Argument,
    Digest,
    Environment,
    FileSizes,
    KernelLaunch,
    LaunchLine,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    Outcome,
    Record,
    RunInfo,
    Signature,
    TensorMeta,
    file_of,
)

HOST = Environment("3", "2", "3", "cpu", "cuda:90", "host", "platform", {})


def never_recorded(run: Path, kind: str) -> None:
    """Delete the records of one kind, and the note that there were any."""
    for path in (*run.glob(f"{kind}-*"), *run.glob("sizes-*")):
        path.unlink()


def saved(
    folder: Path,
    launches: Sequence[KernelLaunch],
    records: Iterable[Record] = (),
    *,
    case: str = "case",
    rank: int = 0,
    ended: bool = True,
    **info: object,
) -> store.Run:
    """Saves a run of these launches; the words of their digests become hexadecimal digits.

    records -- further records: storages, operators, accesses, results, ...
    info    -- fields of `RunInfo`
    """
    facts = msgspec.structs.replace(RunInfo(SCHEMA, case, "/case.py", (), 0, store.now(), HOST), **info)
    writer = store.create(folder, facts, rank)
    add(writer, launches)
    for record in records:
        writer.append(record)
    if ended:
        writer.append(Outcome("passed", "the result agrees with eager"))
    writer.close()
    if not ended:  # a killed process does not close its files
        for sizes in writer.path.glob(f"{file_of(FileSizes).name}-*"):
            sizes.unlink()
    return store.Run(writer.path)


def saved_job(
    folder: Path, *ranks: tuple[Sequence[KernelLaunch], Iterable[Record]], **info: object
) -> store.Run:
    """Saves one run of a job, with the launches and further records of each rank."""
    (launches, records), *others = ranks
    run = saved(folder, launches, records, **{"world_size": len(ranks), **info})  # type: ignore[arg-type]
    for rank, (launches, records) in enumerate(others, 1):
        writer = store.RunWriter(run.path, rank)
        add(writer, launches)
        for record in (*records, Outcome("passed", "the result agrees with eager")):
            writer.append(record)
        writer.close()
    return store.Run(run.path)


def add(writer: store.RunWriter, launches: Sequence[KernelLaunch]) -> None:
    for number, launch in enumerate(launches):
        writer.append(msgspec.structs.replace(launch.kernel, id=number))
        args = tuple(Argument(arg.name, arg.declared, arg.tensor, arg.value) for arg in launch.args)
        writer.append(Signature(number, number, launch.grid, launch.phase, launch.device, args))
        storages = tuple(arg.storage for arg in launch.args if arg.storage is not None)
        writers = {n: arg.writer for n, arg in enumerate(launch.args) if arg.writer}
        site = -1 if launch.site is None else launch.site.id
        line = LaunchLine(launch.index, number, launch.stream, storages, writers, site, launch.thread)
        writer.append(line)
        if launch.finished:
            writer.extend(list(packed([_digested(launch)])))


def _digested(launch: KernelLaunch) -> Digested:
    before = [n for n, arg in enumerate(launch.args) if arg.before]
    after = [n for n, arg in enumerate(launch.args) if arg.after and (arg.writes or arg.modified)]
    digests = [launch.args[n].before for n in before] + [launch.args[n].after for n in after]
    columns = Columns.of([word(digest) for digest in digests if digest])
    return Digested(launch.index, columns, 0, before, after)


class Operators:
    """Calls of operators outside of Triton, in order; `records` are their records in a run."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._count = 0

    def call(
        self,
        launch: int,
        name: str,
        reads: Sequence[int] = (),
        writes: Sequence[int] = (),
        *,
        arguments: str = "",
        allocates: bool = False,
        random: bool = False,
        meta: TensorMeta = META,
        bits: tuple[str | Sequence[str], str] | None = None,
        site: int = -1,
    ) -> Operators:
        """Adds a call after `launch` launches that reads and writes tensors in these storages.

        bits -- the words of the tensors that it read and wrote, if their digests were computed; one for each
        that it read, or one for all
        site -- the number of the `CallSite` that makes the call
        """
        number, self._count = self._count, self._count + 1
        metas = (meta,) * len(reads), (meta,) * len(writes)
        self.records.append(OperatorSignature(number, name, arguments, *metas, allocates, random))
        self.records.append(OperatorCall(number, launch, number, (*reads, *writes), site=site))
        if bits is not None:
            read = [bits[0]] * len(reads) if isinstance(bits[0], str) else bits[0]
            before, after = [Digest(digits(word)) for word in read], Digest(digits(bits[1]))
            self.records.append(OperatorDigests(number, tuple(before), (after,) * len(writes)))
        return self


def word(digest: Digest) -> Digest:
    """A digest whose word became 32 digits."""
    return msgspec.structs.replace(digest, bits=digits(digest.bits))


def digits(bits: str) -> str:
    """The digits that stand for a word in a saved run."""
    return bits.encode().hex()[:32].ljust(32, "0")
