"""Records kernels that Inductor compiles in other processes: each process writes to the same run.

Inductor hands a kernel's source to a pool: a process that it starts (`compile_worker`), which forks workers.
The pool may be older than the run and outlive it, so the job is changed: the worker runs it under a recorder
of its own, which writes its files next to those of this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracing.model import NotCovered
from tracing.record.passes.recorder import PassRecorder
from tracing.store import RunWriter
from tracing.upstream.inductor.compiler import worker_jobs

_recorders: dict[tuple[str, int], PassRecorder] = {}  # of this worker, by run and process


@contextmanager
def recorded_in_workers(writer: RunWriter, *, print_ir: bool = False) -> Iterator[None]:
    """While active, kernels that Inductor compiles in worker processes are recorded into the run, too."""
    path = str(writer.path.resolve())
    with worker_jobs(recorded_job, path, writer.rank, print_ir) as replaced:
        if not replaced:
            what = "compiler passes in Inductor's compile workers, which this torch starts differently"
            writer.append(NotCovered(what, "TORCHINDUCTOR_COMPILE_THREADS=1"))
        yield


def recorded_job(path: str, rank: int, print_ir: bool, job: Callable[..., Any], *args: Any) -> Any:
    """Run a job in a worker process, with every compilation in it recorded into the run at `path`.

    A job that arrives after the run was removed is not recorded.
    """
    if not Path(path).is_dir():
        return job(*args)
    key = (path, os.getpid())
    if key not in _recorders:
        _recorders[key] = PassRecorder(RunWriter(Path(path), rank), print_ir=print_ir)
    with _recorders[key]:
        return job(*args)
