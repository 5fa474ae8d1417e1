"""Decides whether a run is still being recorded; readers must not add records to such a run."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from tracing.model import Cut, Outcome, file_of

_RECORD = re.compile(r"[a-z]+-(?P<host>.+)-(?P<rank>\d+)-(?P<pid>\d+)(?:\.\d{6,9})?\.ndjson(?:\.zst|\.held)?")


def being_recorded(run: Path) -> bool:
    """True if a process may still write to a run.

    A process of this machine does if it has a file of the run open. A process of another machine may if the
    run has no outcome of it. Cost: reads the list of open files of each process that wrote the run.
    """
    here = socket.gethostname()
    # a process that compiles for another one notes no end of its own
    ended = {(host, rank) for host, rank, _ in _processes(run, file_of(Outcome).name)}
    for host, rank, pid in _processes(run):
        if host != here and (host, rank) not in ended:
            return True
        if host == here and int(pid) != os.getpid() and _has_open(int(pid), run):
            return True
    return False


def is_complete(path: Path) -> bool:
    """True if the process that wrote a file of a run noted its end: until then it wrote the file as a whole.

    False if it was killed, or if its disk was full.
    """
    outcome, cut = (path.with_name(file_of(kind).file(writer_of(path))) for kind in (Outcome, Cut))
    return path != outcome and outcome.exists() and not cut.exists()


def writer_of(path: Path) -> str:
    """The process that wrote a file of records, "<host>-<rank>-<pid>"; empty for another file."""
    match = _RECORD.fullmatch(path.name)
    return f"{match['host']}-{match['rank']}-{match['pid']}" if match else ""


def _processes(run: Path, kind: str = "*") -> set[tuple[str, str, str]]:
    matches = (_RECORD.fullmatch(path.name) for path in run.glob(f"{kind}-*.ndjson*"))
    return {(match["host"], match["rank"], match["pid"]) for match in matches if match}


def _has_open(pid: int, run: Path) -> bool:
    folder, files = str(run.resolve()) + os.sep, Path(f"/proc/{pid}/fd")
    try:
        links = list(files.iterdir())
    except PermissionError:  # of another user
        return True
    except OSError:
        return False
    for link in links:
        with suppress(OSError):
            if str(link.readlink()).startswith(folder):
                return True
    return False
