"""A recorded run, read from disk: its records, its blobs, and what is joined from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import zstandard

from tracing.digests import Row, rows, unpacked
from tracing.errors import Problem
from tracing.model import (
    SCHEMA,
    Blob,
    Compilation,
    Derivation,
    DigestBatch,
    DigestLine,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    PackedBlob,
    PassEnd,
    PassIR,
    PassRecord,
    PassStart,
    Record,
    RunInfo,
    Signature,
    StageArtefact,
    UserHash,
)
from tracing.store.lines import KINDS, content, lines

Content: TypeAlias = bytes  # by another name: inside of Run, `bytes` is a method
R = TypeVar("R", bound=Record)
L = TypeVar("L", DigestLine, LaunchTime, UserHash)


class Run:
    """A recorded run, read from disk."""

    def __init__(self, path: Path) -> None:
        """Open the run at `path`; raises Problem if there is none or its schema is another."""
        self.path = path
        try:
            content = (path / "run.json").read_bytes()
        except OSError:
            raise Problem(
                f"{path} is not a run: it has no run.json",
                "list recorded runs with `tracing list`; record one with `tracing run CASE`",
            ) from None
        self.info = _run_info(path, content)
        self._where: dict[Blob, PackedBlob] | None = None
        self._pack: tuple[str, Content] = ("", b"")  # the one read last: the next blob is mostly in it

    @property
    def name(self) -> str:
        return self.path.name

    def records(self, kind: type[R]) -> Iterator[R]:
        """Every record of one kind, process by process, in the order written."""
        for path in self._files(kind):
            yield from lines(path, kind)

    def text(self, blob: Blob) -> str:
        """The content of a blob as text."""
        return self.bytes(blob).decode(errors="replace")

    def bytes(self, blob: Blob) -> bytes:
        """The content of a blob; raises Problem if it is missing or damaged."""
        path = self.path / "blobs" / f"{blob}.zst"
        if not path.exists() and (place := self._place(blob)):
            end = place.start + place.size
            return self._read_pack(place.pack, end)[place.start : end]
        try:
            data = zstandard.decompress(path.read_bytes())
        except (OSError, zstandard.ZstdError) as error:
            raise Problem(
                f"{path} cannot be read: {error}", "copy the run again, or record it again"
            ) from None
        return data

    def launches(self) -> Iterator[KernelLaunch]:
        """Every launch, joined, process by process in launch order; memory does not grow with them."""
        for path in self._files(LaunchLine):
            writer = path.name.removeprefix(KINDS[LaunchLine]).split(".ndjson")[0]
            yield from self._joined(writer)

    def processes(self, kind: type[Record] = LaunchLine) -> list[str]:
        """The processes that launched something, each as "-<host>-<rank>-<pid>", in this order.

        kind -- those that wrote a record of this kind instead
        """
        return [path.name.removeprefix(KINDS[kind]).split(".ndjson")[0] for path in self._files(kind)]

    def signatures(self, process: str) -> dict[int, tuple[Kernel, Signature]]:
        """The ways in which one process launched its kernels, by number."""
        kernels = {kernel.id: kernel for kernel in self._written(process, Kernel)}
        found = {one.id: one for one in self._written(process, Signature)}
        return {number: (kernels[one.kernel], one) for number, one in found.items() if one.kernel in kernels}

    def view(self, process: str, kind: type[Record], fields: type[R]) -> Iterator[R]:
        """The records of one kind of one process, decoded as a record that has only some of their fields."""
        paths = self.path.glob(f"{KINDS[kind]}{process}.ndjson*")
        return (line for path in paths for line in lines(path, fields))

    def rows(self, process: str, launches: int = 0, batches: int = 0) -> Iterator[Row]:
        """The launches of one process in launch order, unjoined: some 2 µs a launch, of constant memory.

        launches, batches -- how many to leave out at the beginning: launches, and the lines of their digests
        """
        started = self._written(process, LaunchLine, launches)
        try:
            yield from rows(started, self._written(process, DigestBatch, batches))
        except (ValueError, IndexError) as error:
            raise self._damaged(f"digests of {process.strip('-')}: {error}") from None

    def joined(self, row: Row, kernel: Kernel, signature: Signature) -> KernelLaunch:
        """One launch of `rows` with its kernel, its signature and its digests."""
        digests = row.digests()
        return _join(kernel, signature, row.line, digests, digests is not None, None, None)

    def passes(self) -> Iterator[PassRecord]:
        """Every recorded pass, joined, process by process, compilation by compilation, in order.

        A pass whose IR could not be derived is left out: the compilation's `Derivation` says why. Raises
        Problem where nobody has tried yet.
        """
        if waiting := len(self.underived()):
            raise Problem(
                f"the IR between the passes of {waiting} compilations of {self.path} is not derived yet",
                "`tracing passes` derives it, with the version of Triton that recorded the run",
            )
        sides = self._sides()
        for path in self._files(PassStart):
            yield from self._joined_passes(_process(path, PassStart), sides)

    def underived(self) -> list[tuple[str, Compilation]]:
        """The compilations whose passes are known and their IR is not, each with its process."""
        tried = {(one.process, one.compilation) for one in self.records(Derivation)}
        known = self._sides().keys()
        found: dict[tuple[str, int], Compilation] = {}
        for path in self._files(PassStart):
            process = _process(path, PassStart)
            compilations = {one.id: one for one in self._written(f"-{process}", Compilation)}
            for start in lines(path, PassStart):
                key = (process, start.compilation)
                if key not in tried and (*key, start.index, "before") not in known:
                    found.setdefault(key, self._compiled(compilations, start.compilation))
        return [(process, compilation) for (process, _), compilation in found.items()]

    def _sides(self) -> dict[tuple[str, int, int, str], Blob]:
        # the IR before and after each pass
        return {(one.process, one.compilation, one.index, one.side): one.blob for one in self.records(PassIR)}

    def artefacts(self) -> Iterator[tuple[Compilation, StageArtefact]]:
        """Every artefact of a stage with the compilation that gave it, process by process."""
        for path in self._files(StageArtefact):
            writer = path.name.removeprefix(KINDS[StageArtefact]).split(".ndjson")[0]
            compilations = {one.id: one for one in self._written(writer, Compilation)}
            for artefact in lines(path, StageArtefact):
                yield self._compiled(compilations, artefact.compilation), artefact

    def _place(self, blob: Blob) -> PackedBlob | None:
        if self._where is None or blob not in self._where:  # a run that is still recorded grows
            self._where = {place.blob: place for place in self.records(PackedBlob)}
        return self._where.get(blob)

    def _read_pack(self, name: str, size: int) -> Content:
        # the content of a pack, of which `size` bytes are needed
        if self._pack[0] != name or len(self._pack[1]) < size:
            try:
                self._pack = name, b"".join(content(self.path / "blobs" / f"{name}.zst"))
            except (OSError, zstandard.ZstdError) as error:
                raise self._damaged(f"pack {name}: {error}") from None
        if len(self._pack[1]) < size:
            raise self._damaged(f"pack {name} ends after {len(self._pack[1])} of {size} bytes")
        return self._pack[1]

    def _files(self, kind: type[Record]) -> list[Path]:
        return sorted(self.path.glob(f"{KINDS[kind]}-*.ndjson*"))

    def _written(self, writer: str, kind: type[R], skip: int = 0) -> Iterator[R]:
        paths = self.path.glob(f"{KINDS[kind]}{writer}.ndjson*")  # one, or none
        return (line for path in paths for line in lines(path, kind, skip))

    def _digests(self, writer: str) -> Iterator[DigestLine]:
        for batch in self._written(writer, DigestBatch):
            try:
                yield from unpacked(batch)
            except (ValueError, IndexError, StopIteration) as error:
                raise self._damaged(f"digests of launch {batch.launches[0]}: {error}") from None

    def _damaged(self, what: str) -> Problem:
        return Problem(f"{self.path} is damaged: {what}", "copy the run again, or record it again")

    def _joined_passes(
        self, process: str, sides: Mapping[tuple[str, int, int, str], Blob]
    ) -> Iterator[PassRecord]:
        compilations = {one.id: one for one in self._written(f"-{process}", Compilation)}
        ends = {(end.compilation, end.index): end for end in self._written(f"-{process}", PassEnd)}
        for start in self._written(f"-{process}", PassStart):
            place = (process, start.compilation, start.index)
            before, after = sides.get((*place, "before")), sides.get((*place, "after"))
            end = ends.get((start.compilation, start.index))
            if before is None or (end is not None and after is None):
                continue
            fields = msgspec.structs.asdict(start) | {"before": before}
            fields["compilation"] = self._compiled(compilations, start.compilation)
            if end is not None:
                fields |= {"after": after, "wall_ms": end.wall_ms}
            yield PassRecord(**fields)

    def _compiled(self, compilations: dict[int, Compilation], number: int) -> Compilation:
        if number not in compilations:
            raise self._damaged(f"there is no compilation {number}")
        return compilations[number]

    def _joined(self, writer: str) -> Iterator[KernelLaunch]:
        # launches and what is told of them are in the same order, so one pass over all joins them
        kernels = {kernel.id: kernel for kernel in self._written(writer, Kernel)}
        signatures = {signature.id: signature for signature in self._written(writer, Signature)}
        digests = _in_step(self._digests(writer))
        times = _in_step(self._written(writer, LaunchTime))
        hashes = _in_step(self._written(writer, UserHash))
        for launch in self._written(writer, LaunchLine):
            found = digests(launch.index)
            signature = signatures.get(launch.signature)
            if signature is None or signature.kernel not in kernels:
                raise self._damaged(f"launch {launch.index} has no signature {launch.signature}")
            finished = found is not None or self.info.digests == "none"
            beside = (times(launch.index), hashes(launch.index))
            yield _join(kernels[signature.kernel], signature, launch, found, finished, *beside)


def _process(path: Path, kind: type[Record]) -> str:
    # whose file of records it is
    return path.name.removeprefix(f"{KINDS[kind]}-").split(".ndjson")[0]


def _in_step(lines: Iterator[L]) -> Callable[[int], L | None]:
    # asked for each launch in order, gives its line if it has one
    line = next(lines, None)

    def of(launch: int) -> L | None:
        nonlocal line
        while line is not None and line.launch < launch:
            line = next(lines, None)
        return line if line is not None and line.launch == launch else None

    return of


def _join(
    kernel: Kernel,
    signature: Signature,
    line: LaunchLine,
    digests: DigestLine | None,
    finished: bool,
    time: LaunchTime | None,
    hashes: UserHash | None,
) -> KernelLaunch:
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
    )


def _run_info(path: Path, content: bytes) -> RunInfo:
    remedy = "copy the run again, or record it again with `tracing run CASE`"
    try:
        schema = msgspec.json.decode(content, type=dict[str, object]).get("schema")
        if schema != SCHEMA:
            raise Problem(
                f"{path} was written with schema {schema}; this version reads schema {SCHEMA}",
                "read it with the version that wrote it, or record it again with `tracing run CASE`",
            )
        return msgspec.json.decode(content, type=RunInfo)
    except msgspec.MsgspecError as error:
        raise Problem(f"{path / 'run.json'} is not a run's description: {error}", remedy) from None


def rank_of(process: str) -> int:
    """The rank of a process that `Run.processes` gives."""
    rank = process.rsplit("-", 2)[1]
    return int(rank) if rank.isdecimal() else 0


def recorded(runs: Path) -> list[Path]:
    """The runs below a folder, oldest first."""
    found = [path.parent for path in runs.glob("*/run.json")]
    return sorted(found, key=lambda path: (path / "run.json").stat().st_mtime)


def open_run(name: str, runs: Path) -> Run:
    """Open a run by path, by name below `runs`, or as "latest"."""
    known = recorded(runs)
    if name == "latest" and known:
        return Run(known[-1])
    path = runs / name
    if Path(name).exists() or not path.exists():
        path = Path(name)
    if path.exists():
        return Run(path)
    near = get_close_matches(name, [run.name for run in known], n=3, cutoff=0.5)
    remedy = f"nearest: {', '.join(near)}" if near else "record one with `tracing run CASE`"
    raise Problem(
        f"there is no run {name}, neither here nor below {runs}", f"{remedy}; list runs with `tracing list`"
    )
