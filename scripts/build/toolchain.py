"""Manage the folder of sources and builds, with a lock that admits one writing command at a time.

The folder has a .gitignore of its own, and `make clean` keeps the folder because its builds took hours.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.machine import GB, free
from scripts.pins import Problem


@dataclass(frozen=True)
class Toolchain:
    root: Path

    @property
    def triton(self) -> Path:
        return self.root / "triton"

    @property
    def llvm(self) -> Path:
        return self.root / "llvm-project"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create and lock the folder; raises Problem if that fails, or if another command holds the lock."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            (self.root / ".gitignore").write_text("*\n", encoding="utf-8")
            lock = (self.root / ".lock").open("a")
        except OSError as error:
            remedy = "choose a folder that can be written: make TOOLCHAIN=/elsewhere …"
            raise Problem(f"{self.root} cannot be written: {error.strerror}", remedy) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                remedy = "wait for it, or stop it with Ctrl-C: it continues where it stopped"
                raise Problem(f"another build is at work in {self.root}", remedy) from None
            yield


def require_room(folder: Path, needed: float, what: str) -> None:
    """Raise Problem if a folder's disk has fewer bytes free than needed."""
    room = free(folder)
    if room < needed:
        remedy = "free some, or build elsewhere: make TOOLCHAIN=/elsewhere …"
        problem = f"{room / GB:.1f} GB are free in {folder}, {needed / GB:.1f} GB were needed for {what}"
        raise Problem(problem, remedy)


def require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        remedy = "copy it to a folder that can be written, or name its archive instead"
        raise Problem(f"{folder} is read-only; Triton builds inside of its own tree", remedy)
