"""Reads the files of a run, line by line, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import zstandard

from tracing.errors import Problem
from tracing.model import Record, file_of

PIECE = 1 << 17  # bytes that are read or unpacked at once
R = TypeVar("R", bound=Record)


def files(run: Path, kind: type[Record]) -> list[Path]:
    """The files of a run with the records of one kind, one a process."""
    return sorted(run.glob(f"{file_of(kind).name}-*.ndjson*"))


def damaged(path: object, how: object) -> Problem:
    """The error for a run that cannot be read further."""
    return Problem(f"{path} is damaged: {how}", "copy the run once more, or record a new one")


def lines(path: Path, kind: type[R], skip: int = 0) -> Iterator[R]:
    """The records of one file, as many as are whole; raises Problem at the first that is damaged.

    skip -- how many lines at the beginning are not looked at
    """
    decoder = msgspec.json.Decoder(kind)
    number = 0
    try:
        for block in _whole_lines(content(path)):
            count = block.count(b"\n")
            if number + count <= skip:
                number += count
                continue
            if number < skip:
                block = block.split(b"\n", skip - number)[-1]
                count, number = count + number - skip, skip
            try:
                records = decoder.decode_lines(block)
            except msgspec.MsgspecError:  # the position in the block, and the bytes before it
                yield from _one_by_one(path, number, decoder, block)
            else:
                yield from records
            number += count
    except zstandard.ZstdError as error:
        raise Problem(
            f"{path} is damaged after line {number}: {error}", "copy the run once more, or record a new one"
        ) from None


def _one_by_one(path: Path, number: int, decoder: msgspec.json.Decoder[R], block: bytes) -> Iterator[R]:
    for line in block.splitlines():
        number += 1
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise damaged(f"{path}:{number}", error) from None


def content(path: Path) -> Iterator[bytes]:
    """The decompressed contents of a file, piece by piece."""
    # A packed file is one frame without an end, whose last bytes zstandard's stream_reader keeps to itself.
    # Lines that resemble one another are packed to a hundredth: what a piece of the file holds has no bound,
    # what is unpacked at once has.
    with path.open("rb") as file:
        if path.suffix == ".zst":
            yield from zstandard.ZstdDecompressor().read_to_iter(file, write_size=PIECE)
            return
        while piece := file.read(PIECE):
            yield piece


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    # a last line without its end is left out: the process was killed while it wrote it
    rest: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*rest, piece[:end]))
            rest.clear()
        rest.append(piece[end:])
