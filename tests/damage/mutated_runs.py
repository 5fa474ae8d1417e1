"""Runs as bit rot, a bad copy or a stranger makes them of recorded ones."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

from tracing.store import blob_name

ESCAPE = "\x1b]0;owned\x07\x9b31m"
_DEEP = json.loads("[" * 200 + "]" * 200)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 10**6, 2**31, 2**63, -(2**63), 2**64, 10**40, 0.5, -0.0, 1e308, "", "\0", "nan",
    "../../x", "/dev/zero", "é" * 50_000, "0" * 32, "f" * 32, "cuda:90", "{}", "%s%n", "[bold]x[/]", ESCAPE,
    "'; drop table launches", "\ud7ff", [], {}, [[]], {"": ""}, _DEEP, list(range(1000)),
)  # fmt: skip


def copied(source: Path, target: Path) -> None:
    """A run whose files are links to those of another one: what is mutated must be replaced, not written."""
    shutil.copytree(source, target, copy_function=os.link, symlinks=True)


def replaced(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".zst":
        return data
    return b"".join(zstandard.ZstdDecompressor().read_to_iter(data))


def packed(path: Path, data: bytes) -> bytes:
    return zstandard.compress(data) if path.suffix == ".zst" else data


Mutation = Callable[[random.Random, Path], str]


def _some(rng: random.Random, run: Path, pattern: str = "*") -> Path:
    paths = sorted(path for path in run.rglob(pattern) if path.is_file())
    return rng.choice(paths or sorted(path for path in run.rglob("*") if path.is_file()))


def _changed_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 1, 8, 100)))
    return rng.choice(
        (
            data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
            data[:at] + rng.randbytes(end - at) + data[end:],
            data[:at] + data[end:],
            data[:at],
            data[:end] + data[at:],
            data[:at] + rng.choice((b"\0", b"\n", b'"', b"\\", b"\xff", ESCAPE.encode())) + data[at:],
        )
    )


def flip(rng: random.Random, run: Path) -> str:
    """The bytes of a file as they are on disk."""
    path = _some(rng, run)
    replaced(path, _changed_bytes(rng, path.read_bytes()))
    return f"bytes of {path.name}"


def flip_inside(rng: random.Random, run: Path) -> str:
    """The bytes of a file before it was compressed."""
    path = _some(rng, run)
    replaced(path, packed(path, _changed_bytes(rng, unpacked(path))))
    return f"content of {path.name}"


def lines(rng: random.Random, run: Path) -> str:
    """Lines that are gone, doubled, or in another order."""
    path = _some(rng, run, "*.ndjson*")
    every = unpacked(path).splitlines(keepends=True)
    at = rng.randrange(len(every) or 1)
    kind = rng.choice(("gone", "doubled", "shuffled", "first"))
    if kind == "gone":
        every = every[:at] + every[at + 1 :]
    elif kind == "doubled":
        every = every[:at] + every[at : at + 1] * rng.choice((2, 50)) + every[at + 1 :]
    elif kind == "shuffled":
        rng.shuffle(every)
    else:
        every = every[at:] + every[:at]
    replaced(path, packed(path, b"".join(every)))
    return f"a line of {path.name} is {kind}"


def _positions(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from _positions(one, (*at, key))


def field(rng: random.Random, run: Path) -> str:
    """A field of a record with another value, or without any."""
    path = _some(rng, run, rng.choice(("*.ndjson*", "*.ndjson*", "*.ndjson", "run.json")))
    every = [unpacked(path)] if path.name == "run.json" else unpacked(path).splitlines()
    at = rng.randrange(len(every) or 1)
    try:
        record = json.loads(every[at])
    except (ValueError, IndexError):
        return flip(rng, run)
    position = rng.choice(list(_positions(record))[1:] or [()])
    if not position:
        return flip(rng, run)
    owner = record
    for key in position[:-1]:
        owner = owner[key]
    value = rng.choice(VALUES)
    if rng.random() < 0.1 and isinstance(owner, dict):
        del owner[position[-1]]
    else:
        owner[position[-1]] = value
    every[at] = json.dumps(record).encode()
    replaced(path, packed(path, b"".join(line + b"\n" for line in every)))
    return f"{path.name}:{at} {position} = {str(value)[:40]!r}"


def blob(rng: random.Random, run: Path) -> str:
    """A blob of other content under its true name, which records then name: only its meaning is wrong."""
    paths = sorted(path for path in (run / "blobs").glob("*.zst") if len(path.stem) == 32)
    if not paths:
        return flip(rng, run)
    path = rng.choice(paths)
    content = unpacked(path)
    for _ in range(rng.choice((1, 5, 50))):
        content = _changed_bytes(rng, content)
    name = blob_name(content)
    (run / "blobs" / f"{name}.zst").write_bytes(zstandard.compress(content))
    for file in sorted(run.glob("*.ndjson*")):
        known = unpacked(file)
        if path.stem.encode() in known:
            replaced(file, packed(file, known.replace(path.stem.encode(), name.encode())))
    return f"blob {path.stem} is {name}"


def file(rng: random.Random, run: Path) -> str:
    """A file that is something else."""
    path = _some(rng, run)
    kind = rng.choice(("gone", "empty", "fifo", "folder", "zero", "self", "other", "renamed"))
    if kind == "other":
        data = _some(rng, run).read_bytes()
        replaced(path, data)
        return f"{path.name} is another file"
    if kind == "renamed":
        names = (f"{path.name}x", path.name.replace("-", "_"), f"{ESCAPE}{path.name}", path.name[1:])
        name = rng.choice(names)
        path.rename(path.with_name(name))
        return f"{path.name} is called {name!r}"
    path.unlink()
    if kind == "empty":
        path.touch()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("zero", "self"):
        path.symlink_to("/dev/zero" if kind == "zero" else path)
    return f"{path.name} is {kind}"


MUTATIONS: tuple[Mutation, ...] = (flip, flip_inside, lines, field, field, field, blob, blob, file)


def mutated(rng: random.Random, source: Path, target: Path) -> list[str]:
    """Make a mutated copy of a run; what was done to it."""
    copied(source, target)
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        mutation = rng.choice(MUTATIONS)
        with contextlib.suppress(zstandard.ZstdError, IndexError):  # of what was mutated before
            done.append(mutation(rng, target))
        if mutation is file:  # it may have no end
            break
    return done


def as_of_another_compiler(run: Path) -> Path:
    """The run, recorded with a Triton that is not here: nothing is derived of it, and nothing compiled."""
    path = run / "run.json"
    info = json.loads(path.read_text())
    info["environment"]["triton"] = "0.0"
    path.write_text(json.dumps(info))
    return run
