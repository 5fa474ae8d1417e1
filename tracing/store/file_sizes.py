"""The sizes that files of a run had when the process that wrote them closed them.

A file that is smaller, or missing, was damaged later, even if it ends with a whole line.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tracing.model import FileSizes, file_of
from tracing.store.recording import writer_of
from tracing.store.run_files import RUN_JSON, damaged, read

_PREFIX = f"{file_of(FileSizes).name}-"
_DECODER = msgspec.json.Decoder(FileSizes)


def missing_bytes(path: Path) -> int:
    """The bytes that a file of records lost at its end; 0 also if the size that it had is unknown."""
    noted = noted_size(path)
    return 0 if noted is None else max(0, noted - path.stat().st_size)


def noted_size(path: Path) -> int | None:
    """The bytes that a file of records had when its process closed it; None: unknown."""
    noted = path.with_name(file_of(FileSizes).file(writer_of(path)))
    return _sizes(noted).get(path.name) if noted.exists() else None


def missing_files(run: Path, names: list[str], prefix: str = "") -> list[str]:
    """The files that processes closed, and that are not there.

    names  -- of the files in the folder of the run
    prefix -- of the names of files to look for
    """
    noted = [name for name in names if name.startswith(_PREFIX)]
    there = set(names) if noted else set()
    every = {name for sizes in noted for name in _sizes(run / sizes) if name.startswith(prefix)}
    return sorted(every - there)


def _sizes(path: Path) -> Mapping[str, int]:
    try:
        status = path.stat()
    except OSError as error:  # as of a link to itself
        raise damaged(path, error) from None
    return _read(path, status.st_size, status.st_mtime_ns)


@functools.lru_cache(64)
def _read(path: Path, size: int, changed: int) -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    lines = read(path, RUN_JSON).split(b"\n")
    for line in lines[:-1]:  # the last one has no end where the process was killed
        try:
            sizes |= _DECODER.decode(line).nbytes
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise damaged(path, error) from None
    return sizes
