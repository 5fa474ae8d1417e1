"""Writes a run: the files that one process appends to."""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from tracing.errors import Problem
from tracing.model import Blob, PackedBlob, Record, RecordFile, RunInfo, Seal, file_of
from tracing.model.redaction import redacted_arguments, redacted_text, redacted_value
from tracing.store.blobs import blob_name
from tracing.store.run_files import append, private, write
from tracing.store.seals import sealer

PACK_WINDOW = 23  # log2 of the bytes that a pack looks back: beyond the text before
_SEALS = file_of(Seal)
RESERVE = 64 << 20  # bytes of disk that must be free before a run starts


def now() -> str:
    """The time in UTC as a run states it, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class RunWriter:
    """A run being recorded by this process.

    A fork of this process writes nothing, because both would append to one compressed stream.
    """

    def __init__(self, path: Path, rank: int = 0) -> None:
        self.path = path
        self.rank = rank
        self._pid = os.getpid()
        self.process = f"{socket.gethostname()}-{rank}-{self._pid}"
        self._files: dict[RecordFile, io.FileIO] = {}
        self._encoder = msgspec.json.Encoder()
        self._compressors: dict[RecordFile, zstandard.ZstdCompressionObj] = {}
        self._lock = threading.RLock()  # kernels are compiled by several threads
        self._packed_blobs: set[Blob] = set()
        self._packs = 0
        self._sealer = sealer(path)
        self.failed: Callable[[OSError], None] | None = None  # receives the error of a write; None: it raises
        self._broken = False  # a write failed: later records would not match those on disk

    def append(self, record: Record) -> None:
        """Write one record as one line, flushed to the operating system on return."""
        self.extend([record])

    def extend(self, records: Sequence[Record]) -> None:
        """Write records of one kind, a line each, with one call to the operating system."""
        if records and self.writes:
            kind = file_of(type(records[0]))
            lines = b"".join(self._encoded(record) + b"\n" for record in records)
            with self._lock, self.survived():
                self._write(kind, lines)

    def last(self, record: Record) -> bool:
        """Write a record even if an earlier write failed; returns False if the disk is still full."""
        if self.writes_here:
            with self._lock, suppress(OSError):
                self._write(file_of(type(record)), self._encoded(record) + b"\n")
                return True
        return False

    @property
    def writes(self) -> bool:
        """False in forks of the process that created this writer, and after a failed write."""
        return self.writes_here and not self._broken

    @property
    def writes_here(self) -> bool:
        """False in forks of the process that created this writer."""
        return os.getpid() == self._pid

    @contextmanager
    def survived(self) -> Iterator[None]:
        """Passes a write error to `failed`, if given; nothing is written afterwards."""
        try:
            yield
        except OSError as error:
            if self.failed is None:
                raise
            self._broken = True
            self.failed(error)

    def seal(self, name: str, data: bytes) -> None:
        """Note that this user appends `data` to a file of the run."""
        if self._sealer is not None:
            self._write(_SEALS, self._encoder.encode(self._sealer.seal(name, data)) + b"\n")

    def _write(self, kind: RecordFile, lines: bytes) -> None:
        file = self._file(kind)
        if not kind.compressed and kind is not _SEALS:
            self.seal(Path(str(file.name)).name, lines)  # first: the process may be killed between the two
        append(file, self._compressed(kind, lines) if kind.compressed else lines)

    def blob(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        name = blob_name(data)
        target = self.path / "blobs" / f"{name}.zst"
        if not self.holds(name) and self.writes and not target.exists():
            with self.survived():
                write(target, zstandard.compress(data))
        return name

    def pack(self, level: int = 1) -> Pack:
        """Start a pack: blobs that resemble each other, compressed together.

        level -- zstd level: 9 saves a fifth compared with 1, and takes 20 times as long, some 20 ms a kernel
        """
        with self._lock:
            self._packs += 1
            return Pack(self, f"{self.process}-{self._packs - 1}", level)

    def packed(self, record: PackedBlob) -> None:
        """Record the location of a blob, so that no other copy is stored."""
        self.append(record)
        self._packed_blobs.add(record.blob)

    def holds(self, blob: Blob) -> bool:
        """True if this process packed the blob, or knows that another process did."""
        return blob in self._packed_blobs

    def known(self, blobs: Iterable[Blob]) -> None:
        """Note blobs that are in packs of other processes."""
        self._packed_blobs.update(blobs)

    def _file(self, kind: RecordFile) -> io.FileIO:
        file = self._files.get(kind)
        if file is None:
            suffix = ".ndjson.zst" if kind.compressed else ".ndjson"
            file = self._files[kind] = private(self.path / f"{kind.name}-{self.process}{suffix}", "ab")
        return file

    def _encoded(self, record: Record) -> bytes:
        try:
            return self._encoder.encode(record.stored())
        except UnicodeEncodeError:  # half of a pair of surrogates, as in an exception's message
            return self._encoder.encode(_encodable(msgspec.to_builtins(record.stored())))

    def _compressed(self, kind: RecordFile, lines: bytes) -> bytes:
        # one frame a file, so that lines refer to earlier ones; flushed: all lines so far are readable
        if kind not in self._compressors:
            self._compressors[kind] = zstandard.ZstdCompressor().compressobj()
        compressor = self._compressors[kind]
        return compressor.compress(lines) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def close(self) -> None:
        """Close the files; all appended data is already on disk."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def reopened(path: Path) -> RunWriter:
    """A writer that adds new files to a recorded run.

    File names contain the process id, which the operating system reuses: a second process would append to a
    compressed frame that has ended, and readers stop at the end of a frame.
    """
    writers = (RunWriter(path, number) for number in itertools.count())
    return next(one for one in writers if not any(path.glob(f"*-{one.process}.ndjson*")))


class Pack:
    """Blobs compressed one after the other in one frame; each is flushed to the operating system immediately.

    An IR that differs little from an earlier one takes a few bytes. Reading a blob unpacks all earlier ones.
    """

    def __init__(self, writer: RunWriter, name: str, level: int) -> None:
        self._writer = writer
        self._name = name
        self._file: io.FileIO | None = None
        self._size = 0
        parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=PACK_WINDOW)
        self._packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    def add(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        name = blob_name(data)
        if not self._writer.holds(name) and self._writer.writes:
            packed = self._packer.compress(data) + self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            with self._writer.survived():
                self._append(packed)
            self._writer.packed(PackedBlob(name, self._name, self._size, len(data)))
            self._size += len(data)
        return name

    def close(self) -> None:
        """End the frame; what was added is on disk already."""
        if self._file is not None:
            if self._writer.writes:
                with self._writer.survived():
                    append(self._file, self._packer.flush())
            self._file.close()
            self._file = None

    def _append(self, packed: bytes) -> None:
        if self._file is None:
            self._file = private(self._writer.path / "blobs" / f"{self._name}.zst", "xb")
        append(self._file, packed)


def create(runs: Path, info: RunInfo, rank: int = 0, job: str | None = None) -> RunWriter:
    """Create a run directory below `runs`, or join that of another rank of the same job.

    Its path is absolute, because the program may change its working directory.

    Only this user may read it. Secrets in run.json are redacted: `tracing.model.redaction`.

    Raises Problem if it cannot be written or the disk is nearly full.
    """
    info, runs = _redacted(info), runs.absolute()
    stamp = info.started.translate(str.maketrans("T", "-", "-:"))[:15]
    try:
        name = re.sub(r"[^\w.+=,-]", "_", info.case)[:100]  # a case's options may be paths, or have quotes
        path = _fresh(runs, f"{name}-{stamp}") if job is None else runs / f"{name}-job-{job}"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (path / "blobs").mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(path).free < RESERVE:
            raise Problem(
                f"{runs} has less than {RESERVE >> 20} MiB of free disk",
                "free some, or record elsewhere with `--runs DIR`",
            )
        content = msgspec.json.format(msgspec.json.encode(info)) + b"\n"
        is_first = _write_once(path / "run.json", content)
    except OSError as error:
        raise Problem(
            f"cannot write a run below {runs}: {error.strerror}", "record elsewhere with `--runs DIR`"
        ) from error
    writer = RunWriter(path, rank)
    if is_first:
        writer.seal("run.json", content)
    return writer


def _redacted(info: RunInfo) -> RunInfo:
    knobs = {name: redacted_value(name, value) for name, value in info.environment.knobs.items()}
    return msgspec.structs.replace(
        info,
        case=redacted_text(info.case),
        argv=redacted_arguments(info.argv),
        program=redacted_arguments(info.program),
        environment=msgspec.structs.replace(info.environment, knobs=knobs),
    )


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, (list, tuple)) else value


def _write_once(path: Path, data: bytes) -> bool:
    # written atomically; the first rank's file is kept, and only that rank seals it
    partial = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}")
    with private(partial, "xb") as file:
        append(file, data)
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    return True


def _fresh(runs: Path, name: str) -> Path:
    # two runs of one case in one second get different names
    runs.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = runs / (name + suffix)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise Problem(f"{runs} holds a thousand runs named {name}", "delete some of its folders")
