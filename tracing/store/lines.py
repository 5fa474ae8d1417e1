"""Reads the files of a run, line by line, in constant memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from tracing.model import LaunchLine, OperatorCall, Record, Segment, Storage, file_of
from tracing.store.cut_files import MISSING, require_whole
from tracing.store.file_sizes import missing_files
from tracing.store.run_files import LINE, damaged, records

# of a line: not JSON, not this record, nested a thousand deep, or with values that the record refuses
REFUSED = (msgspec.MsgspecError, RecursionError, ArithmeticError, LookupError, TypeError, ValueError)
_NAME = re.compile(  # kind; host, rank and process; segment
    r"(?P<kind>[a-z]+)(?P<process>-[\w.-]+-[0-9]{1,9}-[0-9]{1,9})(?:\.(?P<segment>[0-9]{6,9}))?\.ndjson(?P<end>\.zst|\.held)?"
)
# whose last lines a fatal signal may have written to a file of their own, which no seal proves
HELD: tuple[type[Record], ...] = (Storage, LaunchLine, OperatorCall)
_HELD_NAMES = {file_of(kind).name for kind in HELD}
_HEADERS = f"{file_of(Segment).name}-"
_NONE = 1 << 62  # no segment
R = TypeVar("R", bound=Record)


def files(run: Path, kind: type[Record]) -> list[Path]:
    """The files of a run with the records of one kind, one a process; raises Problem if one was deleted."""
    prefix = f"{file_of(kind).name}-"
    return [run / name for name in _names(run, prefix)]


def files_of_process(run: Path, kind: type[Record], process: str) -> list[Path]:
    """The files with the records of one kind that one process wrote: one or none, or one a segment, in order.

    After a fatal signal, another one has the last records.

    process -- as "-<host>-<rank>-<pid>"
    """
    return [run / name for name in _names(run, f"{file_of(kind).name}{process}.")]


def process_of(path: Path) -> str:
    """The process that wrote a file, as "-<host>-<rank>-<pid>"."""
    match = _NAME.fullmatch(path.name)
    return match["process"] if match else ""


def record_files(run: Path) -> list[Path]:
    """The files of a run with records of any kind."""
    return [run / name for name in _names(run)]


def plain_files(run: Path) -> list[Path]:
    """The files of a run with records of any kind that are not compressed."""
    return [path for path in record_files(run) if path.suffix == ".ndjson"]


def _names(run: Path, prefix: str = "") -> list[str]:
    # without the rest of a segment whose header is gone: it was being deleted
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(run)  # noqa: PTH208  # a Path for each costs more than all the rest
        for name in missing_files(run, names, prefix) if prefix else ():
            raise damaged(run / name, MISSING)
        headers = sorted(name for name in names if name.startswith(_HEADERS))
        matches = [_NAME.fullmatch(name) for name in names if name.startswith(prefix)]
        first: dict[str, int] = {}
        for header in filter(None, map(_NAME.fullmatch, headers)):
            number = int(header["segment"] or 0)
            first[header["process"]] = min(number, first.get(header["process"], number))
        matching = [
            one
            for one in matches
            if one
            and (one["end"] != ".held" or one["kind"] in _HELD_NAMES)
            and (one["segment"] is None or first.get(one["process"], _NONE) <= int(one["segment"]))
        ]
        return [one[0] for one in sorted(matching, key=_order)]
    return []


def _order(name: re.Match[str]) -> tuple[str, str, bool, int]:
    return name["kind"], name["process"], name["end"] == ".held", int(name["segment"] or -1)


def lines_of(paths: Sequence[Path], kind: type[R], skip: int = 0) -> Iterator[R]:
    """The complete records of the files of one process, in order; see `lines`."""
    if len(paths) == 1:
        return lines(paths[0], kind, skip)
    return islice((line for path in paths for line in lines(path, kind)), skip, None)


def lines(path: Path, kind: type[R], skip: int = 0) -> Iterator[R]:
    """The complete records of one file; raises Problem at the first damaged one, or where it was truncated.

    If a killed process left its last record incomplete, the records end there.

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
    require_whole(path)


def _one_by_one(path: Path, number: int, decoder: msgspec.json.Decoder[R], block: bytes) -> Iterator[R]:
    for line in block.split(b"\n")[:-1]:
        number += 1
        try:
            yield decoder.decode(line)
        except REFUSED as error:
            raise damaged(f"{path}:{number}", error) from None


def whole_lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a file, some at a time; the last line may lack its end: `cut_files`."""
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
