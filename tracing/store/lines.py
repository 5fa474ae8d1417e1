"""Reads the files of a run, line by line, in constant memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tracing.model import Record, file_of
from tracing.store.run_files import LINE, damaged, records

# of a line: not JSON, not this record, nested a thousand deep, or with values that the record refuses
REFUSED = (msgspec.MsgspecError, RecursionError, ArithmeticError, LookupError, TypeError, ValueError)
_NAME = re.compile(r"[a-z]+-[\w.-]+-[0-9]{1,9}-[0-9]{1,9}\.ndjson(\.zst)?")  # host, rank and process
R = TypeVar("R", bound=Record)


def files(run: Path, kind: type[Record]) -> list[Path]:
    """The files of a run with the records of one kind, one a process."""
    prefix = f"{file_of(kind).name}-"
    return [run / name for name in _names(run, prefix)]


def files_of_process(run: Path, kind: type[Record], process: str) -> list[Path]:
    """The file with the records of one kind that one process wrote: one, or none.

    process -- as "-<host>-<rank>-<pid>"
    """
    names = (f"{file_of(kind).name}{process}{suffix}" for suffix in (".ndjson", ".ndjson.zst"))
    return [run / name for name in names if os.path.lexists(run / name)]


def plain_files(run: Path) -> list[Path]:
    """The files of a run with records of any kind that are not compressed."""
    return [run / name for name in _names(run) if name.endswith(".ndjson")]


def _names(run: Path, prefix: str = "") -> list[str]:
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(run)  # noqa: PTH208  # a Path for each costs more than all the rest
        return sorted(name for name in names if name.startswith(prefix) and _NAME.fullmatch(name))
    return []


def lines(path: Path, kind: type[R], skip: int = 0) -> Iterator[R]:
    """The complete records of one file; raises Problem at the first damaged one.

    skip -- number of lines to skip at the beginning
    """
    decoder = msgspec.json.Decoder(kind)
    number = 0
    for block in whole_lines(path):
        count = block.count(b"\n")
        if number + count <= skip:
            number += count
            continue
        if number < skip:
            block = block.split(b"\n", skip - number)[-1]
            count, number = count + number - skip, skip
        try:
            decoded = decoder.decode_lines(block)
        except REFUSED:  # the position in the block, and the bytes before it
            yield from _one_by_one(path, number, decoder, block)
        else:
            yield from decoded
        number += count


def _one_by_one(path: Path, number: int, decoder: msgspec.json.Decoder[R], block: bytes) -> Iterator[R]:
    for line in block.split(b"\n")[:-1]:
        number += 1
        try:
            yield decoder.decode(line)
        except REFUSED as error:
            raise damaged(f"{path}:{number}", error) from None


def whole_lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a file, some at a time; its last line lacks its end if its process was killed."""
    rest: list[bytes] = []
    held = 0
    for piece in records(path):
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, piece[:end]))
            rest.clear()
            held = 0
        rest.append(piece[end:])
        held += len(piece) - end
        if held > LINE:
            raise damaged(path, f"a line has more than {LINE >> 20} MiB")
