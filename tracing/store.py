"""A run directory: append-only records and content-addressed blobs.

    runs/silu-20261120-231502/
      run.json                              what runs, written before it starts
      kernels-<host>-<rank>-<pid>.ndjson    one line a record; likewise signatures-, outputs-, uncovered-, ...
      launches-<host>-<rank>-<pid>.ndjson.zst   the same, compressed as it is written; likewise digests-
      blobs/<digest>.zst                    IR and sources, each stored once
      blobs/<host>-<rank>-<pid>-<n>.zst     a pack: the IR of one compilation, pass after pass;
                                            packed-*.ndjson.zst tells which part of it is which blob

Nothing is ever rewritten, and every line is handed to the operating system when it is complete, so a
run is readable after its process was killed at any moment: a last line without its end is left out.
One process writes one file of a kind; all of them are read together.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import msgspec
import zstandard

from tracing.digests import Row, rows, unpacked
from tracing.errors import Problem
from tracing.model import (
    SCHEMA,
    Blob,
    Compilation,
    DigestBatch,
    DigestLine,
    KeptTensor,
    Kernel,
    KernelArg,
    KernelLaunch,
    LaunchLine,
    LaunchTime,
    NotCovered,
    Outcome,
    PackedBlob,
    PassEnd,
    PassRecord,
    PassStart,
    Record,
    Result,
    RunInfo,
    Signature,
    StageArtefact,
    UserHash,
)

Content: TypeAlias = bytes  # by another name: inside of Run, `bytes` is a method
R = TypeVar("R", bound=Record)
L = TypeVar("L", DigestLine, LaunchTime, UserHash)

KINDS: dict[type[Record], str] = {
    Kernel: "kernels",
    Signature: "signatures",
    LaunchLine: "launches",
    DigestBatch: "digests",
    LaunchTime: "times",
    UserHash: "hashes",
    Compilation: "compilations",
    PassStart: "passes",
    PassEnd: "passends",
    StageArtefact: "artefacts",
    PackedBlob: "packed",
    KeptTensor: "outputs",
    NotCovered: "uncovered",
    Outcome: "outcomes",
    Result: "results",
}
# one line a launch, or a pass: compressed as they are written
PACKED = {"launches", "digests", "times", "hashes", "passes", "passends", "packed"}
PACK_WINDOW = 23  # log2 of the bytes that a pack looks back: beyond the text before
RESERVE = 64 << 20  # bytes of disk that must be free before a run starts


def now() -> str:
    """The time in UTC as a run states it, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class RunWriter:
    """A run being recorded by this process."""

    def __init__(self, path: Path, rank: int = 0) -> None:
        self.path = path
        self.rank = rank
        self._writer = f"{socket.gethostname()}-{rank}-{os.getpid()}"
        self._files: dict[str, BinaryIO] = {}
        self._encoder = msgspec.json.Encoder()
        self._packers: dict[str, zstandard.ZstdCompressionObj] = {}
        self._lock = threading.RLock()  # kernels are compiled by several threads
        self._packed_blobs: set[Blob] = set()
        self._packs = 0

    def append(self, record: Record) -> None:
        """Write one record as one line; it is in the operating system's hands on return."""
        self.extend([record])

    def extend(self, records: Sequence[Record]) -> None:
        """Write records of one kind, a line each, with one call to the operating system."""
        if records:
            kind = KINDS[type(records[0])]
            lines = b"".join(self._encoder.encode(record) + b"\n" for record in records)
            with self._lock:
                file = self._file(kind)
                file.write(self._packed(kind, lines))
                file.flush()

    def blob(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode() if isinstance(content, str) else content
        name = hashlib.blake2b(data, digest_size=16).hexdigest()
        target = self.path / "blobs" / f"{name}.zst"
        if name not in self._packed_blobs and not target.exists():
            partial = target.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            try:
                partial.write_bytes(zstandard.compress(data))
                partial.replace(target)
            except OSError:
                partial.unlink(missing_ok=True)
                raise
        return name

    def pack(self) -> Pack:
        """Start a pack: blobs that resemble one another, and take little beside one another."""
        with self._lock:
            self._packs += 1
            return Pack(self, f"{self._writer}-{self._packs - 1}")

    def packed(self, record: PackedBlob) -> None:
        """Note where a blob lies, so that it is not stored again."""
        self.append(record)
        self._packed_blobs.add(record.blob)

    def _file(self, kind: str) -> BinaryIO:
        file = self._files.get(kind)
        if file is None:
            suffix = ".ndjson.zst" if kind in PACKED else ".ndjson"
            file = self._files[kind] = (self.path / f"{kind}-{self._writer}{suffix}").open("ab")
        return file

    def _packed(self, kind: str, lines: bytes) -> bytes:
        # one frame a file, flushed: what repeats is found again, and every line so far can be unpacked
        if kind not in PACKED:
            return lines
        if kind not in self._packers:
            self._packers[kind] = zstandard.ZstdCompressor().compressobj()
        packer = self._packers[kind]
        return packer.compress(lines) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def close(self) -> None:
        """Close the files; what was appended is on disk already."""
        for file in self._files.values():
            file.close()
        self._files.clear()


class Pack:
    """Blobs compressed one behind the other in one frame; each is in the operating system's hands at once.

    An IR that differs little from one before it takes a few bytes. Reading a blob unpacks those before it.
    """

    def __init__(self, writer: RunWriter, name: str) -> None:
        self._writer = writer
        self._name = name
        self._file: BinaryIO | None = None
        self._size = 0
        self._known: set[Blob] = set()
        # level 1: among texts that repeat one another higher levels take longer and gain nothing
        parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=PACK_WINDOW)
        self._packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    def add(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode() if isinstance(content, str) else content
        name = hashlib.blake2b(data, digest_size=16).hexdigest()
        if name not in self._known:
            self._known.add(name)
            if self._file is None:
                self._file = (self._writer.path / "blobs" / f"{self._name}.zst").open("xb")
            self._file.write(self._packer.compress(data))
            self._file.write(self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
            self._file.flush()
            self._writer.packed(PackedBlob(name, self._name, self._size, len(data)))
            self._size += len(data)
        return name

    def close(self) -> None:
        """End the frame; what was added is on disk already."""
        if self._file is not None:
            self._file.write(self._packer.flush())
            self._file.close()
            self._file = None


def create(runs: Path, info: RunInfo, rank: int = 0, job: str | None = None) -> RunWriter:
    """Make a new run directory below `runs`, or join that of another rank of the same job.

    Raises Problem if it cannot be written or the disk is all but full.
    """
    stamp = info.started.translate(str.maketrans("T", "-", "-:"))[:15]
    try:
        path = _fresh(runs, f"{info.case}-{stamp}") if job is None else runs / f"{info.case}-job-{job}"
        (path / "blobs").mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(path).free < RESERVE:
            raise Problem(
                f"{runs} has less than {RESERVE >> 20} MiB of free disk",
                "free some, or record elsewhere with `--runs DIR`",
            )
        _write_once(path / "run.json", msgspec.json.format(msgspec.json.encode(info)) + b"\n")
    except OSError as error:
        raise Problem(
            f"cannot write a run below {runs}: {error.strerror}", "record elsewhere with `--runs DIR`"
        ) from error
    return RunWriter(path, rank)


def _write_once(path: Path, data: bytes) -> None:
    # whole or not at all; the first rank's stands
    partial = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}")
    partial.write_bytes(data)
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(partial)
    partial.unlink()


def _fresh(runs: Path, name: str) -> Path:
    # two runs of one case in one second get different names
    runs.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = runs / (name + suffix)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise Problem(f"{runs} holds a thousand runs named {name}", "remove some with `tracing clean`")


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
            yield from _lines(path, kind)

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

    def processes(self) -> list[str]:
        """The processes that launched something, each as "-<host>-<rank>-<pid>", in this order."""
        return [
            path.name.removeprefix(KINDS[LaunchLine]).split(".ndjson")[0] for path in self._files(LaunchLine)
        ]

    def signatures(self, process: str) -> dict[int, tuple[Kernel, Signature]]:
        """The ways in which one process launched its kernels, by number."""
        kernels = {kernel.id: kernel for kernel in self._written(process, Kernel)}
        found = {one.id: one for one in self._written(process, Signature)}
        return {number: (kernels[one.kernel], one) for number, one in found.items() if one.kernel in kernels}

    def view(self, process: str, kind: type[Record], fields: type[R]) -> Iterator[R]:
        """The records of one kind of one process, decoded as a record that has only some of their fields."""
        paths = self.path.glob(f"{KINDS[kind]}{process}.ndjson*")
        return (line for path in paths for line in _lines(path, fields))

    def rows(self, process: str) -> Iterator[Row]:
        """The launches of one process in launch order, unjoined: some 2 µs a launch, of constant memory."""
        try:
            yield from rows(self._written(process, LaunchLine), self._written(process, DigestBatch))
        except (ValueError, IndexError) as error:
            raise self._damaged(f"digests of {process.strip('-')}: {error}") from None

    def joined(self, row: Row, kernel: Kernel, signature: Signature) -> KernelLaunch:
        """One launch of `rows` with its kernel, its signature and its digests."""
        digests = row.digests()
        return _join(kernel, signature, row.line, digests, digests is not None, None, None)

    def passes(self) -> Iterator[PassRecord]:
        """Every recorded pass, joined, process by process, compilation by compilation, in order."""
        for path in self._files(PassStart):
            yield from self._joined_passes(path.name.removeprefix(KINDS[PassStart]).split(".ndjson")[0])

    def artefacts(self) -> Iterator[tuple[Compilation, StageArtefact]]:
        """Every artefact of a stage with the compilation that gave it, process by process."""
        for path in self._files(StageArtefact):
            writer = path.name.removeprefix(KINDS[StageArtefact]).split(".ndjson")[0]
            compilations = {one.id: one for one in self._written(writer, Compilation)}
            for artefact in _lines(path, StageArtefact):
                yield self._compiled(compilations, artefact.compilation), artefact

    def _place(self, blob: Blob) -> PackedBlob | None:
        if self._where is None or blob not in self._where:  # a run that is still recorded grows
            self._where = {place.blob: place for place in self.records(PackedBlob)}
        return self._where.get(blob)

    def _read_pack(self, name: str, size: int) -> Content:
        # the content of a pack, of which `size` bytes are needed
        if self._pack[0] != name or len(self._pack[1]) < size:
            try:
                self._pack = name, b"".join(_content(self.path / "blobs" / f"{name}.zst"))
            except (OSError, zstandard.ZstdError) as error:
                raise self._damaged(f"pack {name}: {error}") from None
        if len(self._pack[1]) < size:
            raise self._damaged(f"pack {name} ends after {len(self._pack[1])} of {size} bytes")
        return self._pack[1]

    def _files(self, kind: type[Record]) -> list[Path]:
        return sorted(self.path.glob(f"{KINDS[kind]}-*.ndjson*"))

    def _written(self, writer: str, kind: type[R]) -> Iterator[R]:
        paths = self.path.glob(f"{KINDS[kind]}{writer}.ndjson*")
        return (line for path in paths for line in _lines(path, kind))

    def _digests(self, writer: str) -> Iterator[DigestLine]:
        for batch in self._written(writer, DigestBatch):
            try:
                yield from unpacked(batch)
            except (ValueError, IndexError, StopIteration) as error:
                raise self._damaged(f"digests of launch {batch.launches[0]}: {error}") from None

    def _damaged(self, what: str) -> Problem:
        return Problem(f"{self.path} is damaged: {what}", "copy the run again, or record it again")

    def _joined_passes(self, writer: str) -> Iterator[PassRecord]:
        compilations = {one.id: one for one in self._written(writer, Compilation)}
        ends = {(end.compilation, end.index): end for end in self._written(writer, PassEnd)}
        for start in self._written(writer, PassStart):
            compilation = self._compiled(compilations, start.compilation)
            fields = msgspec.structs.asdict(start) | {"compilation": compilation}
            if end := ends.get((start.compilation, start.index)):
                fields |= {"after": end.after, "wall_ms": end.wall_ms}
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


def _lines(path: Path, kind: type[R]) -> Iterator[R]:
    decoder = msgspec.json.Decoder(kind)
    number = 0
    try:
        for block in _whole_lines(_content(path)):
            try:
                found = decoder.decode_lines(block)
            except msgspec.MsgspecError:  # where in the block, and what stands before it
                yield from _one_by_one(path, number, decoder, block)
            else:
                yield from found
            number += block.count(b"\n")
    except zstandard.ZstdError as error:
        raise Problem(
            f"{path} is damaged behind line {number}: {error}", "copy the run again, or record it again"
        ) from None


def _one_by_one(path: Path, number: int, decoder: msgspec.json.Decoder[R], block: bytes) -> Iterator[R]:
    for line in block.splitlines():
        number += 1
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise Problem(
                f"{path}:{number} is damaged: {error}", "copy the run again, or record it again"
            ) from None


def _content(path: Path) -> Iterator[bytes]:
    # Piece by piece. A packed file is one frame without an end, whose last bytes zstandard's stream_reader
    # keeps to itself.
    unpacker = zstandard.ZstdDecompressor().decompressobj() if path.suffix == ".zst" else None
    with path.open("rb") as file:
        while piece := file.read(1 << 16):
            yield unpacker.decompress(piece) if unpacker is not None else piece


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    # a last line without its end is left out: the process was killed while it wrote it
    rest: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, piece[:end]))
            rest.clear()
        rest.append(piece[end:])


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
