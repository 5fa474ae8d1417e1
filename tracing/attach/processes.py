"""List the processes that have Triton's compiler loaded, and what each compiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracing.attach import compiling
from tracing.attach.compiling import Compiling
from tracing.environment.stops import stop_folders
from tracing.upstream.torch.source_names import COMPILE_WORKER


@dataclass(frozen=True, slots=True)
class Compiler:
    """A process that has libtriton loaded."""

    pid: int
    command: str
    worker: bool  # of Inductor's pool
    tracer: int  # 0: none
    now: Compiling | None  # None: not started with TRACING_STOP, or nothing was compiled yet

    @property
    def waiting(self) -> bool:
        return self.now is not None and self.now.waiting and not self.tracer


def compilers() -> list[Compiler]:
    """The processes that this user may inspect. Cost: a read of each process's memory map."""
    known = {now.pid: now for folder in stop_folders() for now in compiling.read(folder)}
    return [_compiler(pid, known.get(pid)) for pid in _with_triton()]


def status(pid: int, field: str) -> str:
    """A field of /proc/PID/status; "" if there is none, or no such process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.partition(f"{field}:")[2].partition("\n")[0].strip()


def _with_triton() -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            loaded = "/libtriton.so" in (folder / "maps").read_text(encoding="utf-8", errors="replace")
        except OSError:  # another user's, or gone
            continue
        if loaded and folder.name != str(os.getpid()):
            yield int(folder.name)


def _compiler(pid: int, now: Compiling | None) -> Compiler:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    worker = any(word.endswith(COMPILE_WORKER) for word in words)
    return Compiler(pid, " ".join(words).strip(), worker, int(status(pid, "TracerPid") or 0), now)
