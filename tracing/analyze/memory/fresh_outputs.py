"""Find the outputs of a launch whose memory was allocated before it, and which nothing had written yet."""

from __future__ import annotations

from collections.abc import Iterator

from tracing.model import KernelLaunch, LaunchLine, Operator, OperatorSignature, Record, Selection
from tracing.store import Run, rank_of


class _Launch(Record, frozen=True):
    # what is needed of a LaunchLine
    index: int
    signature: int
    storages: tuple[int, ...]


def fresh_outputs(run: Run, rank: int, launch: KernelLaunch) -> frozenset[int]:
    """Positions of outputs in memory that an operator allocated, and that nothing recorded wrote since.

    Empty for a run that leaves out launches, steps or operators: one of them may have written it.

    Cost: a pass over the launches and operators of its process, 1 and some 20 µs each.
    """
    steps = run.info.steps
    if run.info.selection != Selection() or steps.skips or steps.until:
        return frozenset()
    for process in run.processes(OperatorSignature):
        if rank_of(process) == rank:
            fresh = _fresh_storages(run, process, launch.index)
            return frozenset(
                n for n, arg in enumerate(launch.args) if arg.declared == "out" and arg.storage in fresh
            )
    return frozenset()


def _fresh_storages(run: Run, process: str, launch: int) -> set[int]:
    written = _written_by_launches(run, process, launch)
    fresh: dict[int, int] = {}  # storage -> number of launches that were made when it was allocated
    for one in run.operators(process):
        if one.launch > launch:
            break
        for storage in {tensor.storage for tensor in one.writes}:
            fresh.pop(storage, None)
            if _only_allocates(one):
                fresh[storage] = one.launch
    return {storage for storage, count in fresh.items() if written.get(storage, -1) < count}


def _only_allocates(one: Operator) -> bool:
    return one.allocates and not one.reads


def _written_by_launches(run: Run, process: str, stop: int) -> dict[int, int]:
    # the last launch before `stop` that may have written each storage
    signatures = run.signatures(process)
    last: dict[int, int] = {}
    for line in _launches(run, process):
        if line.index >= stop or line.signature not in signatures:
            break
        args = [arg for arg in signatures[line.signature][1].args if arg.tensor is not None]
        for arg, storage in zip(args, line.storages, strict=False):
            if arg.writes:
                last[storage] = line.index
    return last


def _launches(run: Run, process: str) -> Iterator[_Launch]:
    return run.view(process, LaunchLine, _Launch) if process in run.processes() else iter(())
