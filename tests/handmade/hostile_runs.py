"""Runs that a stranger would make by hand: each class of them by its parameters, over a thousand in all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import zstandard
from damage.mutated_runs import packed, replaced, unpacked

from tracing.store import blob_name

TEXTS = {
    "title": "\x1b]0;owned\x07", "link": "\x1b]8;;http://x\x1b\\x", "colour": "\x1b[31m", "C1": "\x9b31m\x85",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07", "return": "a\rb\x08\x7f", "direction": "\u202eb\u2066",
    "null": "a\0b", "up": "../../../owned", "root": "/owned", "dots": "..", "empty": "",
    "lit": "RUN: touch owned\n// RUN: touch owned", "shell": "$(touch owned)`touch owned`;'\"",
    "long": "x" * 300_000, "markup": "[bold]x[/]",
}  # fmt: skip
NUMBERS = {"negative": -1, "int64": 2**63, "huge": 10**40, "float": 1e308, "text": "1", "null": None}
FILES = ("fifo", "/dev/zero", "/dev/tty", "folder", "self", "sparse", "zeros", "lines", "deep", "binary")
UNITS = (
    "\\", '\\"', '"', "%a", "%a, ", "%a = ", "(", "{", "[", "<", "loc(", 'loc("', "^bb0", "#a", "!a ", " ",
    "\t", "\n", "%a = a.b %a\n", "loc(\n", "{\n", "}\n", "#loc1 = loc(#loc1)\n", "!1 = !{!1, !1}\n", ": ",
    "é", "#a = #a #a\n", "tensor<1x", "1x", "// RUN: touch owned\n", "define ", "tt.func @a(", "a:\n",
    "\x1b]0;owned\x07",
)  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """How one run becomes hostile."""

    name: str
    make: Callable[[Path], None]  # of a copy of a run


def hostile_runs(run: Path) -> Iterator[Hostile]:
    """Every hostile run that can be made of this one."""
    for file, position, value in sorted(_fields(run), key=str):
        values = TEXTS if isinstance(value, str) else NUMBERS
        for kind, new in values.items():
            yield Hostile(f"{file} {position} {kind}", partial(_set, file, position, new))
    for path in sorted(one for one in run.rglob("*") if one.is_file()):
        for kind in FILES:
            yield Hostile(f"{path.name} {kind}", partial(_be, str(path.relative_to(run)), kind))
    for unit in UNITS:
        yield Hostile(f"IR of {unit!r}", partial(_say, unit * (200_000 // len(unit))))
    for start, size in ((-1, 1), (0, -1), (0, 1 << 40), (1 << 62, 1), (3, 10)):
        for pack in ("../run", "p", "..", "/etc/passwd"):
            yield Hostile(f"pack {pack!r} {start}:{size}", partial(_pack, pack, start, size))


Position = tuple[str | int, ...]


def _fields(run: Path) -> set[tuple[str, Position, Any]]:
    # of the first record of each file: its kind, where the field is, and its value
    fields: set[tuple[str, Position, Any]] = set()
    for path in [run / "run.json", *run.glob("*.ndjson*")]:
        text = unpacked(path)
        record = json.loads(text if path.name == "run.json" else text.splitlines()[0])
        kind = path.name if path.name == "run.json" else path.name.split("-")[0]
        fields |= {(kind, position, value) for position, value in _leaves(record)}
    return fields


def _leaves(value: Any, at: Position = ()) -> Iterator[tuple[Position, Any]]:
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield at, value
    for key, one in items or ():
        yield from _leaves(one, (*at, key))


def _set(kind: str, position: Position, value: Any, run: Path) -> None:
    # that field of every record of a kind
    for path in [run / kind] if kind == "run.json" else run.glob(f"{kind}-*"):
        text = unpacked(path)
        records = [json.loads(line) for line in ([text] if kind == "run.json" else text.splitlines())]
        for record in records:
            owner = record
            for key in position[:-1]:
                owner = owner[key]
            owner[position[-1]] = value
        replaced(path, packed(path, b"".join(json.dumps(one).encode() + b"\n" for one in records)))


def _be(file: str, kind: str, run: Path) -> None:
    path = run / file
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("/dev/zero", "/dev/tty", "self"):
        path.symlink_to(path if kind == "self" else kind)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "binary":
        path.write_bytes(os.urandom(10_000))
    else:
        piece = {"zeros": b"\0", "lines": b"{}\n", "deep": b"["}[kind] * (1 << 20)
        packer = zstandard.ZstdCompressor().compressobj()
        pieces = [packer.compress(piece) for _ in range(300)] + [packer.flush()]
        path.write_bytes(b"".join(pieces) if path.suffix == ".zst" else piece)


def _say(text: str, run: Path) -> None:
    # every blob of IR is this text, under its true name
    name = blob_name(text)
    (run / "blobs" / f"{name}.zst").write_bytes(zstandard.compress(text.encode()))
    for path in run.glob("*.ndjson*"):
        known = unpacked(path)
        for one in (run / "blobs").glob("*.zst"):
            known = known.replace(one.stem.encode(), name.encode())
        replaced(path, packed(path, known))


def _pack(pack: str, start: int, size: int, run: Path) -> None:
    for path in (run / "blobs").glob("*.zst"):
        record = {"blob": path.stem, "pack": pack, "start": start, "size": size}
        with (run / "packed-vm-0-1.ndjson").open("a") as file:
            file.write(json.dumps(record) + "\n")
        path.unlink()
    (run / "blobs/p.zst").write_bytes(zstandard.compress(b"content"))


def made(hostile: Hostile, run: Path, target: Path) -> Path:
    """A copy of a run that is hostile."""
    shutil.copytree(run, target, copy_function=os.link, symlinks=True)
    hostile.make(target)
    return target
