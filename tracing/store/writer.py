"""Writes a run: the files that one process appends to."""

from __future__ import annotations

import io
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import zstandard

from tracing.model import Blob, FileSizes, PackedBlob, Record, RecordFile, Seal, Segment, file_of
from tracing.store.appended_file import AppendedFile
from tracing.store.blobs import blob_name
from tracing.store.lines import process_of, record_files
from tracing.store.run_files import append, private, write
from tracing.store.seals import sealer
from tracing.store.segments import Segments

PACK_WINDOW = 23  # log2 of the bytes that a pack looks back: beyond the text before
_SEALS = file_of(Seal)
_HELD = 1000  # records of one kind


_FileKey: TypeAlias = tuple[RecordFile, int | None]  # and the segment of a file that is in one


class RunWriter:
    """A run being recorded by this process.

    A fork of this process writes nothing, because both would append to one compressed stream.
    """

    def __init__(self, path: Path, rank: int = 0) -> None:
        self.path = path
        self.rank = rank
        self._pid = os.getpid()
        self.process = f"{socket.gethostname()}-{rank}-{self._pid}"
        self.segments: Segments | None = None  # None: no step is ever deleted
        self._files: dict[_FileKey, AppendedFile] = {}
        self._held: dict[RecordFile, list[bytes]] = {}  # lines, without their ends
        self._encoder = msgspec.json.Encoder()
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
        if records:
            self.append_text(type(records[0]), self._lines(records))

    def make_room(self) -> None:
        """Begin another segment if this one is full; records that refer to this one are written before."""
        if self.segments is not None:
            self.segments.has_room()

    def extend_encoded(self, record: type[Record], lines: Iterable[bytes]) -> None:
        """Write records of one kind that are encoded already; see `encoded`."""
        self.append_text(record, b"\n".join([*lines, b""]))

    def append_text(self, record: type[Record], text: bytes) -> None:
        """Write records of one kind that are encoded already, each with the end of its line."""
        if self.writes:
            kind = file_of(record)
            segments = self.segments
            if kind.segmented and segments is not None and not segments.has_room():
                with self.survived():
                    raise OSError("kernels, IR and the current step occupy more than --disk allows")
            with self._lock, self.survived():
                self._write(kind, text)

    def hold(self, record: type[Record], line: bytes) -> None:
        """Write an encoded record, at the latest before one of another method, which may refer to it."""
        if self.writes:
            with self._lock, self.survived():
                held = self.held(record)
                held.append(line)
                if len(held) >= _HELD:
                    self._release()

    def held(self, record: type[Record]) -> list[bytes]:
        """The lines of one kind that `hold` holds back, without their ends; always the same list."""
        return self._held.setdefault(file_of(record), [])

    def release(self) -> None:
        """Write what `hold` holds back."""
        if self.writes:
            with self._lock, self.survived():
                self._release()

    def last(self, record: Record) -> bool:
        """Write a record even if an earlier write failed; returns False if the disk is still full."""
        if self.writes_here:
            with self._lock, suppress(OSError):
                self._write(file_of(type(record)), self.encoded(record) + b"\n")
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

    def seal(self, name: str, data: bytes, segment: int | None = None) -> None:
        """Note that this user appends `data` to a file of the run, which is in a segment, or in none."""
        if self._sealer is not None:
            self._append((_SEALS, segment), self._encoder.encode(self._sealer.seal(name, data)) + b"\n")

    def _segment(self, kind: RecordFile) -> int | None:
        return self.segments.number if self.segments is not None and kind.segmented else None

    def _release(self) -> None:
        for kind, held in self._held.items():  # an interrupt after the write repeats it: no record changes
            if held:
                self._write_to(kind, b"".join(line + b"\n" for line in held))
                held.clear()

    def _write(self, kind: RecordFile, lines: bytes) -> None:
        if not self._broken:
            self._release()
        self._write_to(kind, lines)

    def _write_to(self, kind: RecordFile, lines: bytes) -> None:
        segment = self._segment(kind)
        if not kind.compressed and kind is not _SEALS:
            # first: the process may be killed between the two
            self.seal(kind.file(self.process, segment), lines, segment)
        self._append((kind, segment), lines)

    def _append(self, key: _FileKey, lines: bytes) -> None:
        self.grew(self._file(key).append(lines))

    def grew(self, count: int) -> None:
        """Count bytes that were written to the run."""
        if self.segments is not None:
            self.segments.grew(count)

    def blob(self, content: str | bytes) -> Blob:
        """Store content once and return its name."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        name = blob_name(data)
        if self.segments is not None:
            self.segments.keep(name)
        if not self.holds(name) and self.writes and not self._has_file(name):
            with self.survived():
                self._write_blob(name, data)
        return name

    def append_with_blob(self, data: bytes, record: Callable[[Blob], Record]) -> Blob:
        """Store content once, and the record that refers to it; returns its name.

        In a run of segments, the content is deleted with the last segment that has such a record.
        """
        name = blob_name(data)
        segments = self.segments
        if segments is None:
            self.append(record(self.blob(data)))
        elif self.writes:
            with self._lock, self.survived():
                own = segments.refers(name) or not self._has_file(name)
                if not segments.refers(name) and own:
                    self._write_blob(name, data)
                if own:
                    segments.refer(name, len(data))
                one = record(name)
                self._write(file_of(type(one)), self.encoded(one) + b"\n")
        return name

    def _has_file(self, name: Blob) -> bool:
        return os.path.exists(self._blob_file(name))

    def _blob_file(self, name: Blob) -> str:
        return f"{self.path}/blobs/{name}.zst"

    def _write_blob(self, name: Blob, data: bytes) -> None:
        packed = zstandard.compress(data)
        write(self._blob_file(name), packed)
        self.grew(len(packed))

    def begin_segments(self) -> Segments:
        """Write the records of steps to segments, from the first one on."""
        self.segments = Segments(self.path, self.process)
        return self.segments

    def begin_segment(self, header: Segment) -> None:
        """Begin the segment of this number, and end the current one; the first has number 0."""
        assert self.segments is not None
        if not self.writes:
            return
        with self._lock, self.survived():
            self._release()
            if header.index > self.segments.number:
                number = self.segments.number
                for name in self.segments.next():
                    self._close(name, number)
            self._write(file_of(Segment), self.encoded(header) + b"\n")

    def delete_oldest_segment(self) -> None:
        """Delete the oldest closed segment."""
        assert self.segments is not None
        if self.writes_here:
            with self._lock, self.survived():
                self.segments.delete_oldest()

    def _close(self, name: str, segment: int) -> None:
        for key in [one for one in self._files if one[0].file(self.process, segment) == name]:
            if key[1] == segment:
                self._files.pop(key).close()
        if self._sealer is not None:
            self._sealer.forget(name)

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

    def _file(self, key: _FileKey) -> AppendedFile:
        file = self._files.get(key)
        if file is None:
            kind, segment = key
            name = kind.file(self.process, segment)
            opened = private(f"{self.path}/{name}", "ab")
            file = self._files[key] = AppendedFile(opened, compressed=kind.compressed)
            if segment is not None and self.segments is not None:
                self.segments.opened(name)
        return file

    def encoded(self, record: Record) -> bytes:
        """A record as a line of its file, without the end of the line."""
        try:
            return self._encoder.encode(record.stored())
        except UnicodeEncodeError:  # half of a pair of surrogates, as in an exception's message
            return self._encoder.encode(_encodable(msgspec.to_builtins(record.stored())))

    def _lines(self, records: Sequence[Record]) -> bytes:
        try:
            return self._encoder.encode_lines([record.stored() for record in records])
        except UnicodeEncodeError:
            return b"".join(self.encoded(record) + b"\n" for record in records)

    def close(self) -> None:
        """Close the files; all appended data is already on disk, except for what an interrupt has left."""
        if self.writes:
            with self._lock, self.survived():
                self._release()
        for file in list(self._files.values()):  # a write that fails is noted in another one
            if self.writes:
                with self.survived():
                    file.complete()
        if self._files:
            self._note_sizes()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _note_sizes(self) -> None:
        # the loss of a file, or of lines at its end, is seen later; seals may be stripped
        own = [path for path in record_files(self.path) if process_of(path) == f"-{self.process}"]
        sealed = [path for path in own if not path.name.startswith(f"{_SEALS.name}-")]
        self.append(FileSizes({path.name: path.stat().st_size for path in sealed}))


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
                self._writer.grew(len(packed))
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


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, (list, tuple)) else value
