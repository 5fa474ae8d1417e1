"""Record what each process of a debugged program compiles, for debuggers and for users.

Each process writes two files into a shared folder: `PID.json`, its current compilation, and `PID.seen`, every
stage of every kernel that it compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from tracing.errors import Problem
from tracing.store import run_files

_FILE = 64 << 20  # bytes: a longer file is not one of these
_STAGE = "make_"  # Triton's name of the function that runs stage "ttgir" is make_ttgir


class WantedStop(msgspec.Struct, frozen=True):
    """A stop: globs of the kernel's, the stage's and the pass's name."""

    kernel: str
    stage: str
    name: str

    def __str__(self) -> str:
        return f"{self.kernel}:{self.stage}:{self.name}"

    def passes(self, kernel: str, stage: str, passes: Iterable[str]) -> list[str]:
        """The passes that match."""
        here = fnmatchcase(kernel, self.kernel) and fnmatchcase(stage, self.stage)
        return [name for name in passes if here and fnmatchcase(name, self.name)]


class SeenCompilation(msgspec.Struct, frozen=True):
    """One stage of one kernel that a process compiled."""

    kernel: str
    stage: str
    passes: tuple[str, ...]
    stopped: bool = False  # it was wanted
    reason: str = ""  # why the process did not stop there


class Compiling(msgspec.Struct, frozen=True):
    """The current compilation of one process."""

    pid: int
    kernel: str
    stage: str  # "ttgir"
    passes: tuple[str, ...]  # of the pass manager that runs, in order
    options: Mapping[str, str]
    stack: tuple[str, ...]  # of `python_stack.described`, outermost first
    wanted: str
    waiting: bool = False  # for a debugger
    number: int = 0  # of the pass managers that ran in this process
    recorded: str = ""  # the recorded pass that is replayed: "pass 12 of stage ttgir in runs/silu-1"
    program: tuple[str, ...] = ()  # of a replayed pass: lines on the recorded launch of its kernel
    left_out: Mapping[str, int] = {}  # frames that `stack` lacks, by package
    pass_options: tuple[str, ...] = ()  # of each of `passes`: "num-stages=3 dump-intermediate-steps=false"


def wanted_of(text: str) -> WantedStop:
    """Parse `kernel:stage:pass`; an empty part matches anything. Raises Problem for more than three."""
    parts = text.split(":")
    if len(parts) > 3:
        raise Problem(f"{text!r} has {len(parts)} parts", "write kernel:stage:pass, as in softmax*:ttgir:cse")
    kernel, stage, name = ([part or "*" for part in parts] + ["*", "*"])[:3]
    return WantedStop(kernel, stage.removeprefix(_STAGE), name)


def stage_of(tag: str) -> str:
    return tag.removeprefix(_STAGE)


def write(folder: Path, now: Compiling) -> None:
    """Replace this process's file atomically."""
    path = folder / f"{now.pid}.json"
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(now))
    temporary.replace(path)


def note(folder: Path, pid: int, seen: SeenCompilation) -> None:
    with (folder / f"{pid}.seen").open("ab") as file:
        file.write(msgspec.json.encode(seen) + b"\n")


def read(folder: Path) -> Iterator[Compiling]:
    """The current compilation of each process of a folder of this user's."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield msgspec.json.decode(run_files.read(path, _FILE), type=Compiling)
        except (Problem, msgspec.MsgspecError):  # no regular file, or one that is being replaced
            continue


def seen(folder: Path) -> list[SeenCompilation]:
    """Every stage that the processes of a folder compiled."""
    files = (run_files.read(path, _FILE) for path in sorted(folder.glob("*.seen")))
    lines = [line for file in files for line in file.splitlines()]
    return [msgspec.json.decode(line, type=SeenCompilation) for line in lines]


def never_came(wanted: WantedStop, came: list[SeenCompilation]) -> Problem | None:
    """The part of `wanted` that matched nothing, with similar names; None if a process stopped."""
    if any(one.stopped for one in came):
        return None
    if not came:
        return Problem(
            f"no compile reached {wanted}: Triton compiled nothing",
            "does the program launch a Triton kernel, or did it fail before?",
        )
    kernels = [one for one in came if fnmatchcase(one.kernel, wanted.kernel)]
    stages = [one for one in kernels if fnmatchcase(one.stage, wanted.stage)]
    if not kernels:
        return _none("kernel", wanted.kernel, (one.kernel for one in came))
    if not stages:
        return _none("stage", wanted.stage, (one.stage for one in kernels))
    return _none("pass", wanted.name, (name for one in stages for name in one.passes))


def _none(what: str, name: str, known: Iterable[str]) -> Problem:
    there = list(dict.fromkeys(known))
    near = get_close_matches(name, there, n=3, cutoff=0.5)
    listed = f"nearest: {', '.join(near)}" if near else f"there were: {', '.join(there)}"
    return Problem(f"no compile reached a {what} {name}", listed)
