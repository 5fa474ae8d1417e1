"""Stops for a debugger: their settings, and the folders that the processes of a program share."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

LAUNCH = Path(__file__).parents[1] / "attach" / "launch"  # in PYTHONPATH it makes Python read TRACING_STOP
STOP_PREFIX = "tracing-stop-"  # name prefix of the folders that the processes of one debugged program share


@dataclass(frozen=True, slots=True)
class StopSettings:
    """The settings in TRACING_STOP and its companions for every Python process of a program."""

    wanted: str  # "kernel:stage:pass"
    folder: Path
    owner: bool  # this process is the program's first, and made the folder
    session: Path | None  # the debug configuration that VSCode is to start
    seconds: float  # to wait for a debugger
    # the process that may trace, like its children; None: any process, while it is awaited
    tracer: int | None


def stop_settings() -> StopSettings | None:
    """The stop settings of this process, None if there are none; the first process makes the shared folder.

    Compiles are then forced: Triton and Inductor only use caches in that folder. Cache keys of kernels do not
    change. Inductor's timeout for its workers is disabled, because a debugger stops them.
    """
    wanted = os.environ.get("TRACING_STOP")
    if not wanted:
        return None
    owner = "TRACING_STOP_DIR" not in os.environ
    folder = Path(os.environ.get("TRACING_STOP_DIR") or stop_folder())
    os.environ.update(
        TRACING_STOP_DIR=str(folder),
        TRITON_ALWAYS_COMPILE="1",
        TRITON_CACHE_DIR=str(folder / "triton"),
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"),
        TORCHINDUCTOR_FORCE_DISABLE_CACHES="1",
        TORCHINDUCTOR_COMPILE_WORKER_WAIT_TIMEOUT="0",
    )
    session, tracer = os.environ.get("TRACING_STOP_SESSION"), os.environ.get("TRACING_STOP_TRACER")
    return StopSettings(
        wanted,
        folder,
        owner,
        Path(session) if session else None,
        float(os.environ.get("TRACING_STOP_SECONDS", "120")),
        int(tracer) if tracer else None,
    )


def stops() -> bool:
    """True if this process stops for a debugger where TRACING_STOP says so."""
    return "TRACING_STOP" in os.environ


def stop_no_more() -> None:
    """Let this process, and those that it starts, not stop for a debugger."""
    os.environ.pop("TRACING_STOP", None)


def stop_folder() -> Path:
    """A new folder for one debugged program; those of programs that were killed are removed."""
    for folder in stop_folders():
        if not Path("/proc", folder.name.split("-")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{STOP_PREFIX}{os.getpid()}-"))


def stop_folders() -> list[Path]:
    """The folders of this user's debugged programs on this machine.

    Folders of other users are ignored: they could name a process to attach to, or contain files without an
    end.
    """
    folders = sorted(Path(tempfile.gettempdir()).glob(f"{STOP_PREFIX}[0-9]*-*"))
    return [folder for folder in folders if _is_own_folder(folder)]


def _is_own_folder(path: Path) -> bool:
    try:
        facts = path.lstat()
    except OSError:  # the process has ended meanwhile
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def stopping(wanted: str, folder: Path) -> dict[str, str]:
    """The variables with which a child stops at `wanted`, for this process and what it starts to trace."""
    paths = [str(LAUNCH), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "TRACING_STOP": wanted,
        "TRACING_STOP_DIR": str(folder),
        "TRACING_STOP_TRACER": str(os.getpid()),
    }
