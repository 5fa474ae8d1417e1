"""The process of a run whose kept tensors are compared."""

from __future__ import annotations

from tracing.errors import Problem
from tracing.model import KeptTensor
from tracing.store.reader import Run, rank_of


def kept_process(run: Run, rank: int) -> str:
    """The one process of a rank that kept tensors; raises Problem if there is none, or several."""
    processes = [one for one in run.processes(KeptTensor) if rank_of(one) == rank]
    if len(processes) != 1:
        of = f" of rank {rank}" if run.info.world_size > 1 else ""
        what = f"no tensors{of}" if not processes else f"tensors of {len(processes)} processes"
        raise Problem(f"{run.path} kept {what}", "record both runs with `tracing run … --keep-outputs`")
    return processes[0]
