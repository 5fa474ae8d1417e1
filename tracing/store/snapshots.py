"""Snapshots of the records of a run whose oldest segments may be deleted while they are read."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tracing.model import Segment
from tracing.store.lines import files, record_files


def temporary_folder() -> Path:
    """A new folder that is deleted when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="tracing-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def snapshot(run: Path, into: Path) -> Path:
    """Link the records of a run into an empty folder, or copy them if it is on another disk.

    Blobs are not part of it. Repeated until no segment was deleted meanwhile.
    """
    while True:
        headers = files(run, Segment)
        complete = all([_taken(path, into / path.name) for path in record_files(run)])
        if complete and files(run, Segment)[:1] == headers[:1]:
            return into
        for path in into.iterdir():
            path.unlink()


def _taken(path: Path, copy: Path) -> bool:
    try:
        try:
            os.link(path, copy, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(path, copy, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
