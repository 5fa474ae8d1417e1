"""The segments of one process: files that are deleted together, to bound the size of a long recording.

Records of steps (`segmented` kinds) go to the files of the current segment, and so do the seals of these
files. Deleting a segment deletes its files, and the kept tensors that no later segment refers to. Kernels, IR
and sources belong to no segment.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tracing.model import Blob, Segment, file_of

_BLOCK = 512  # bytes of a block in st_blocks


class Segments:
    """Numbers the segments of a process, and deletes the oldest one; used under its writer's lock."""

    def __init__(self, run: Path, process: str) -> None:
        """process -- "<host>-<rank>-<pid>" """
        self._run = run
        self._header = file_of(Segment).file
        self._process = process
        self.number = 0  # of the current segment
        self.closed: deque[int] = deque()  # earlier ones that are on disk, oldest first
        self.written = 0  # bytes since `size` was asked
        self.in_segment = 0  # bytes since the current segment began
        self._files: dict[int, list[str]] = {0: []}  # names
        self._blobs: dict[Blob, tuple[int, int]] = {}  # the last segment that refers to it, and its bytes
        self.deleted: list[Callable[[int], None]] = []  # receive the oldest segment that is left
        self.make_room: Callable[[int], bool] | None = None  # False: so many bytes have no room on the disk
        self.quantum = 0  # bytes after which `make_room` is called; 0: never
        self.blob_bytes = 0  # of the blobs that segments refer to, before compression

    @property
    def oldest(self) -> int:
        """The first segment on disk."""
        return self.closed[0] if self.closed else self.number

    def has_room(self, incoming: int = 0) -> bool:
        """True if so many bytes may be written; deletes the oldest segments if that makes room."""
        due = 0 < self.quantum <= self.written + incoming
        return not due or self.make_room is None or self.make_room(incoming)

    def grew(self, count: int) -> None:
        """Count bytes that were written."""
        self.written += count
        self.in_segment += count

    def opened(self, name: str) -> None:
        """Note a file of the current segment."""
        self._files[self.number].append(name)

    def next(self) -> list[str]:
        """Begin the next segment; returns the names of the files that this one closes."""
        names = self._files[self.number]
        self.closed.append(self.number)
        self.number += 1
        self.in_segment = 0
        self._files[self.number] = []
        return names

    def refer(self, blob: Blob, nbytes: int) -> None:
        """The current segment refers to a blob, which is deleted with the last segment that does."""
        if blob not in self._blobs:
            self.blob_bytes += nbytes
        self._blobs[blob] = self.number, nbytes

    def keep(self, blob: Blob) -> None:
        """A blob belongs to no segment."""
        if blob in self._blobs:
            self.blob_bytes -= self._blobs.pop(blob)[1]

    def refers(self, blob: Blob) -> bool:
        """True if a segment on disk refers to this blob."""
        return blob in self._blobs

    def delete_oldest(self) -> None:
        """Delete the oldest closed segment: its header first, without which readers ignore the rest."""
        number = self.closed.popleft()
        gone = [blob for blob, (last, _) in self._blobs.items() if last <= number]
        blobs = [f"blobs/{blob}.zst" for blob in gone]
        for name in (self._header(self._process, number), *self._files.pop(number), *blobs):
            with suppress(FileNotFoundError):
                os.unlink(f"{self._run}/{name}")
        for blob in gone:
            self.keep(blob)
        for listener in self.deleted:
            listener(self.oldest)

    def size(self) -> int:
        """Bytes that the whole run occupies on disk, files of other processes included."""
        self.written = 0
        return occupied_bytes(self._run) + occupied_bytes(self._run / "blobs")


def occupied_bytes(folder: Path) -> int:
    """Bytes that the files of a folder occupy on disk, without those of its folders."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    total += max(status.st_blocks * _BLOCK, status.st_size)
    return total
