"""Creates the folder of a run, and reopens that of a recorded one."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import socket
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from tracing.errors import Problem
from tracing.model import RunInfo
from tracing.model.redaction import redacted_arguments, redacted_text, redacted_value
from tracing.store.run_files import append, private
from tracing.store.writer import RunWriter

RESERVE = 64 << 20  # bytes of disk that must be free before a run starts


def now() -> str:
    """The time in UTC as a run states it, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def reopened(path: Path) -> RunWriter:
    """A writer that adds new files to a recorded run.

    File names contain the process id, which the operating system reuses: a second process would append to a
    compressed frame that has ended, and readers stop at the end of a frame.
    """
    writers = (RunWriter(path, number) for number in itertools.count())
    return next(one for one in writers if not any(path.glob(f"*-{one.process}.ndjson*")))


def create(runs: Path, info: RunInfo, rank: int = 0, job: str | None = None) -> RunWriter:
    """Create a run directory below `runs`, or join that of another rank of the same job.

    Its path is absolute, because the program may change its working directory.

    Only this user may read it. Secrets in run.json are redacted: `tracing.model.redaction`.

    Raises Problem if it cannot be written or the disk is nearly full.
    """
    info, runs = _redacted(info), runs.absolute()
    stamp = info.started.translate(str.maketrans("T", "-", "-:"))[:15]
    try:
        name = re.sub(r"[^\w.+=,-]", "_", info.case)[:100]  # a case's options may be paths, or have quotes
        runs.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(runs).free < RESERVE:
            raise Problem(
                f"{runs} has less than {RESERVE >> 20} MiB of free disk",
                "free some, or record elsewhere with `--runs DIR`",
            )
        path = _fresh(runs, f"{name}-{stamp}") if job is None else runs / f"{name}-job-{job}"
        path.mkdir(mode=0o700, exist_ok=True)
        (path / "blobs").mkdir(mode=0o700, exist_ok=True)
        content = msgspec.json.format(msgspec.json.encode(info)) + b"\n"
        is_first = _write_once(path / "run.json", content)
    except OSError as error:
        raise Problem(
            f"cannot write a run below {runs}: {error.strerror}", "record elsewhere with `--runs DIR`"
        ) from error
    writer = RunWriter(path, rank)
    if is_first:
        writer.seal("run.json", content)
    return writer


def _redacted(info: RunInfo) -> RunInfo:
    knobs = {name: redacted_value(name, value) for name, value in info.environment.knobs.items()}
    return msgspec.structs.replace(
        info,
        case=redacted_text(info.case),
        argv=redacted_arguments(info.argv),
        program=redacted_arguments(info.program),
        environment=msgspec.structs.replace(info.environment, knobs=knobs),
    )


def _write_once(path: Path, data: bytes) -> bool:
    # written atomically; the first rank's file is kept, and only that rank seals it
    partial = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}")
    with private(partial, "xb") as file:
        append(file, data)
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    finally:
        partial.unlink()
    return True


def _fresh(runs: Path, name: str) -> Path:
    # two runs of one case in one second get different names
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        path = runs / (name + suffix)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise Problem(f"{runs} holds a thousand runs named {name}", "delete some of its folders")
