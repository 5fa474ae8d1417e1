"""Opens, unpacks and replaces files of a run, which may come from an untrusted source.

Only regular files are opened: a FIFO would block forever, and /dev/zero has no end. Files that are read as a
whole have a size limit, because 100 kB of compressed zeros unpack to gigabytes.
"""

from __future__ import annotations

import io
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import zstandard

from tracing.errors import Problem
from tracing.model import KEPT_ON_DISK

PIECE = 1 << 17  # bytes that are read or unpacked at once
RUN_JSON = 16 << 20  # bytes: Linux gives a process 2 MiB of arguments and variables, and JSON escapes some
LINE = 64 << 20  # bytes: the longest recorded lines, digests of a batch of launches, have some 100 kB
TEXT = 256 << 20  # bytes: the longest IR that was seen has some 10 MB
PACK = 1 << 30  # bytes: the IR of one compilation, pass after pass
_UNPACKED = 64 << 20, 1000  # bytes, or times the size: records that resemble each other shrink to 1/100
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
TENSOR = min(KEPT_ON_DISK, _MEMORY // 2)  # bytes: maximum that a recording keeps, if it fits


def damaged(path: object, how: object) -> Problem:
    """The error for a run that cannot be read further."""
    return Problem(f"{path} is damaged: {how}", "copy the run once more, or record a new one")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, to be read; raises Problem for anything else."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a null byte in its name
        raise damaged(path, getattr(error, "strerror", None) or error) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise damaged(path, "it is no regular file")
    with os.fdopen(number, "rb") as file:
        yield file


def read(path: Path, most: int) -> bytes:
    """The bytes of a file; raises Problem if it has more than `most`."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise damaged(path, f"it has more than {_size(most)}")
    return data


def unpacked(path: Path, most: int) -> bytes:
    """The content of a compressed file; raises Problem if it has more than `most` bytes."""
    pieces: list[bytes] = []
    size = 0
    for piece in content(path):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise damaged(path, f"it unpacks to more than {_size(most)}")
    return b"".join(pieces)


def content(path: Path) -> Iterator[bytes]:
    """The decompressed contents of a file, piece by piece; raises Problem where it is damaged."""
    # A compressed file is one frame without an end; zstandard's stream_reader would withhold its last bytes.
    # Similar lines compress to a hundredth, so a piece of the file may unpack to any size: `write_size`
    # limits what is unpacked at once.
    with opened(path) as file:
        if path.suffix != ".zst":
            while piece := file.read(PIECE):
                yield piece
            return
        try:
            yield from zstandard.ZstdDecompressor().read_to_iter(file, write_size=PIECE)
        except (zstandard.ZstdError, MemoryError) as error:
            raise damaged(path, error) from None


def records(path: Path) -> Iterator[bytes]:
    """The contents of a file of records; raises Problem if it unpacks to far more than records do."""
    at_least, times = _UNPACKED
    size = path.stat().st_size if path.exists() else 0
    left = max(at_least, times * size) if path.suffix == ".zst" else None
    for piece in content(path):
        if left is not None and (left := left - len(piece)) < 0:
            raise damaged(path, f"it unpacks to more than {times} times its size")
        yield piece


def private(path: str | Path, mode: str) -> io.FileIO:
    """Open a file with access for this user only, for unbuffered writing.

    A buffer could be written twice, by this process and by its forks.
    """
    return io.FileIO(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def append(file: io.FileIO, data: bytes) -> None:
    """Write all of the data; a nearly full disk may accept only a part per call."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def write(path: str | Path, data: bytes) -> None:
    """Write a file atomically; never through a link, which may point outside of the run.

    Raises Problem if its folder is a link.
    """
    folder = os.path.dirname(path)
    if os.path.islink(folder):
        raise damaged(folder, "it is a link, and nothing is written through it")
    partial = f"{path}.{os.getpid()}-{threading.get_ident()}"
    _delete(partial)
    try:
        with private(partial, "xb") as file:
            append(file, data)
        os.replace(partial, path)
    except OSError:
        _delete(partial)
        raise


def _delete(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def file_name(name: str) -> str:
    """A name from a run, as the name of one file: no folder, nothing hidden, at most 100 characters."""
    return re.sub(r"[^\w.+-]", "_", name)[:100].lstrip(".") or "_"


def _size(number: int) -> str:
    return f"{number >> 20} MiB"
