"""Find the files of a run that end in the middle of a record.

A killed process, a full disk or an incomplete copy truncates files. Records before the cut are readable.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracing.store.recording import being_recorded
from tracing.store.run_files import opened

# Source: RFC 8878, 3.1.1: frames, their headers and blocks
_MAGIC = b"\x28\xb5\x2f\xfd"
_SIZE_BYTES = (0, 2, 4, 8)  # of the content size, by the first two bits of the descriptor
_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE = 1  # a block of one byte, repeated


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file whose last record is incomplete."""

    path: Path
    lost: int  # bytes at its end that cannot be read


def cut_files(run: Path) -> list[CutFile]:
    """The files of records that end early; none while the run is being recorded.

    Cost: reads the end of each file; for a compressed one, a pass over its blocks, 0.3 µs each.
    """
    if being_recorded(run):
        return []
    paths = sorted(run.glob("*.ndjson*"))
    cuts = (CutFile(path, _lost(path)) for path in paths if path.is_file() and path.stat().st_size)
    return [cut for cut in cuts if cut.lost]


def _lost(path: Path) -> int:
    with opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if path.suffix != ".zst":
            return len(content) - content.rfind(b"\n") - 1
        return len(content) - max(_block_ends(content), default=0)


def _block_ends(content: mmap.mmap) -> Iterator[int]:
    # where each whole block ends; a writer hands whole lines to a block, or to several at once
    position, size = 0, len(content)
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
        position += 4 if last and descriptor >> 2 & 1 else 0  # a checksum
