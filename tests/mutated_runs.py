"""Runs as bit rot, a bad copy or a stranger makes them of recorded ones, and commands that read them in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import zstandard
from tracing.cli.terminal import SafeStream
from typer.main import get_command

from tracing import model, store
from tracing.analyze.passes.locations import located
from tracing.analyze.passes.operations import operations
from tracing.analyze.passes.renaming import renamed
from tracing.cli.app import app
from tracing.model import CompiledGraph, Record, file_of
from tracing.report.run_json import run_json
from tracing.report.text import launch_text, run_text
from tracing.store import blob_name
from tracing.store.graph_file import read_schedule


def _kinds() -> Iterator[type[Record]]:
    for one in vars(model).values():
        with contextlib.suppress(KeyError, TypeError):
            file_of(one)
            yield one


KINDS = tuple(_kinds())  # of record that a run has files of
SECONDS = 60  # after which a command hangs
MEMORY = 4 << 30  # bytes of address space that it may take in addition
ESCAPE = "\x1b]0;owned\x07\x9b31m"
_DEEP = json.loads("[" * 200 + "]" * 200)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**40, 0.5, -0.0, 1e308, "", "a", "../../x", "/dev/zero",
    ESCAPE, "\ud7ff", "\0", "é" * 50_000, [], {}, [[]], {"": ""}, _DEEP, "nan", "0" * 32, "f" * 32, "cuda:90", "{}",
    "%s%n", "[bold]x[/]", "'; drop table launches", 10**6, list(range(1000)),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What one command left."""

    words: Sequence[str]
    status: int
    out: str
    err: str

    def faults(self) -> Iterator[str]:
        """What no run may cause: a traceback, a status of its own, control characters, an unforeseen exception."""
        if self.status not in (0, 1, 2):
            yield f"exit status {self.status}"
        if "Traceback" in self.err:
            yield self.err[self.err.index("Traceback") :]
        if any((ord(one) < 32 and one not in "\n\t") or 127 <= ord(one) < 160 for one in self.out + self.err):
            yield "control characters are printed"
        if self.status == 2 and not self.out + self.err:
            yield "no error is printed"


@cache
def _command() -> Any:
    return get_command(app)


class Hangs(BaseException):
    """A command did not end in time."""


def ask(*words: str) -> Answer:
    """Execute a command in this process, as `main` does, within bounds of time and memory."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr

    def hang(*_: object) -> None:
        raise Hangs(" ".join(words))

    signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    try:
        sys.stdout, sys.stderr = SafeStream(out), SafeStream(err)  # type: ignore[assignment,arg-type]
        status = _command().main(list(words), standalone_mode=False)
    finally:
        signal.alarm(0)
        sys.stdout, sys.stderr = before
    return Answer(words, int(status or 0), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """While entered, this process cannot take much more memory than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def questions(run: Path, other: Path, launch: int, kernel: str) -> list[list[str]]:
    """The commands that read a run and compile nothing."""
    at, to = str(run), str(other)
    return [
        ["list", "--runs", str(run.parent)],
        ["show", at],
        ["show", at, "--json"],
        ["show", at, "--launch", str(launch)],
        ["compare", at, to],
        ["compare", to, at, "--json"],
        ["passes", at],
        ["passes", at, "--kernel", kernel],
        ["passes", at, "--kernel", kernel, "--changed"],
        ["passes", at, "--kernel", kernel, "--pass", "0"],
        ["passes", at, to],
        ["winners", at],
        ["ranks", at],
        ["replay", at, "--launch", str(launch)],
        ["repro", at, "--launch", str(launch), "--to", str(run.parent / "repro")],
        ["swap", at, to, "--anyway"],
    ]


def read_all(path: Path) -> None:
    """Read whatever a run holds, as analyses and reports do; raises Problem where it is damaged."""
    run = store.Run(path)
    for kind in KINDS:
        for record in run.records(kind):
            record.stored()
    for launch in run.launches():
        list(launch_text(launch))
    for process in run.processes():
        list(run.operators(process))
        run.storages(process)
    for one in run.passes():
        operations(run.text(one.before))
        if one.after is not None:
            renamed(run.text(one.before), run.text(one.after))
    for _, artefact in run.artefacts():
        located(artefact.stage, run.text(artefact.blob))
    for graph in run.records(CompiledGraph):
        read_schedule(run, graph)
    list(run_text(run))
    run_json(run, [(0, one) for one in run.launches()])


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
        name = rng.choice(
            (f"{path.name}x", path.name.replace("-", "_"), f"{ESCAPE}{path.name}", path.name[1:])
        )
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
