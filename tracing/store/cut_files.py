"""Find the files of a run that end in the middle of a record, or lack some at the end, or are missing.

A killed process and a full disk truncate files: the records before the cut are all that was recorded. A file
of a process that noted its end, or the sizes of its files, was truncated or deleted later, by an incomplete
copy: it is damaged.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracing.model import DigestBatch, Kernel, LaunchLine, OperatorCall, OperatorDigests, file_of
from tracing.store.file_sizes import missing_bytes, missing_files, noted_size
from tracing.store.recording import being_recorded, is_complete
from tracing.store.run_files import damaged, opened

# Source: RFC 8878, 3.1.1: frames, their headers and blocks
_MAGIC = b"\x28\xb5\x2f\xfd"
_SIZE_BYTES = (0, 2, 4, 8)  # of the content size, by the first two bits of the descriptor
_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE = 1  # a block of one byte, repeated
_WINDOW = 16 << 20  # bytes of a file that are held in memory at once
_BLOBS = "blobs"
_NAMES_IR = b'"stages":{"'  # of a kernel with code
MISSING = "it is missing: all its records are lost"


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file whose last records are lost."""

    path: Path
    lost: int  # bytes at its end that cannot be read; 0: it is empty, or missing
    damaged: bool  # False: its process was killed, or its disk was full
    missing: int = 0  # bytes that it had in addition when its process closed it

    @property
    def how(self) -> str:
        """What is lost: "its last 7 bytes are an incomplete record: all later ones are lost"."""
        if self.path.name == _BLOBS:
            return "it has no files: the code of all kernels is lost"
        if not self.path.exists():
            return MISSING
        if not self.lost and self.missing:
            missing = f"{self.missing} bytes are" if self.missing > 1 else "byte is"
            return f"its last {missing} missing: all later records are lost"
        if not self.lost:
            return "it is empty: all its records are lost"
        of = f"{self.lost} bytes are" if self.lost > 1 else "byte is"
        return f"its last {of} an incomplete record: all later ones are lost"


def cut_files(run: Path) -> list[CutFile]:
    """The files that end early or are missing, or `blobs/`; none while the run is being recorded.

    Cost: reads the end of each file; for a compressed one, a pass over its blocks, 0.3 µs each, in
    constant memory.
    """
    if being_recorded(run):
        return []
    paths = [path for path in sorted(run.glob("*.ndjson*")) if path.is_file()]
    deleted = [
        CutFile(run / name, 0, damaged=True) for name in missing_files(run, [one.name for one in paths])
    ]
    lost = [CutFile(run / _BLOBS, 0, damaged=True)] if _lacks_blobs(run) else []
    return lost + deleted + [cut for cut in map(_cut, paths) if cut is not None]


def _lacks_blobs(run: Path) -> bool:
    # a run without code has no files there, either
    blobs = run / _BLOBS
    if blobs.is_dir():
        with os.scandir(blobs) as entries:
            if any(True for _ in entries):
                return False
    return any(_NAMES_IR in path.read_bytes() for path in run.glob(f"{file_of(Kernel).name}-*"))


def is_damaged(run: Path) -> bool:
    """True if records of a run were lost after its process had ended; the cost is that of `cut_files`."""
    return any(one.damaged for one in cut_files(run))


def require_whole(path: Path) -> None:
    """Raise Problem if a file of records is damaged: truncated after its process had noted its end.

    Cost: as of `cut_files`.
    """
    noted = is_complete(path) or missing_bytes(path)
    if noted and (cut := _cut(path)) and not being_recorded(path.parent):
        raise damaged(path, cut.how)


def _cut(path: Path) -> CutFile | None:
    missing = missing_bytes(path)
    complete = missing > 0 or is_complete(path)
    if not path.stat().st_size:
        return CutFile(path, 0, complete) if complete and not _may_be_empty(path) else None
    lost = _lost(path)
    return CutFile(path, lost, complete, missing) if lost or missing else None


def _may_be_empty(path: Path) -> bool:
    if noted_size(path) == 0:  # as in a segment that the end of the program began
        return True
    # the files of launches and operators are opened before the first one: without digests there was none
    for kind, digests in ((LaunchLine, DigestBatch), (OperatorCall, OperatorDigests)):
        name = file_of(kind).name
        if path.name.startswith(f"{name}-"):
            process = path.name[len(name) + 1 :].partition(".ndjson")[0]
            return not path.with_name(file_of(digests).file(process)).exists()
    return False


def _lost(path: Path) -> int:
    with opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if path.suffix != ".zst":
            return len(content) - content.rfind(b"\n") - 1
        return len(content) - max(_block_ends(content), default=0)


def _block_ends(content: mmap.mmap) -> Iterator[int]:
    # where each whole block ends; a writer hands whole lines to a block, or to several at once
    position, size, released = 0, len(content), 0
    while content[position : position + 4] == _MAGIC and position + 5 < size:
        descriptor = content[position + 4]
        single = descriptor >> 5 & 1
        position += 5 + (not single) + _DICTIONARY_BYTES[descriptor & 3]
        position += _SIZE_BYTES[descriptor >> 6] or single
        last = False
        while not last and position + 3 <= size:
            header = int.from_bytes(content[position : position + 3], "little")
            last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == _RLE else length)
            if position > size:
                return
            yield position
            if position - released > _WINDOW:
                content.madvise(mmap.MADV_DONTNEED, released, _WINDOW)
                released += _WINDOW
        position += 4 if last and descriptor >> 2 & 1 else 0  # a checksum
