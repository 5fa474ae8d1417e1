"""Collect evidence of memory accesses that no correct kernel makes, launch by launch.

Some of it was recorded at the launch; the rest follows from layouts, addresses and boxes in the run.
Nothing here is a verdict: each is evidence at a launch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from tracing.analyze.memory.first_shapes import FirstShapes
from tracing.digest.columns import Row
from tracing.model import Access, KernelLaunch, LaunchLine, MemoryEvidence, OutOfBounds
from tracing.store import Run, rank_of

_SPECIALISED = "specialised"
_ACCESSES = {"race": "races", _SPECIALISED: "was compiled for other arguments"}


def memory_evidence(run: Run, rank: int = 0, launch: int | None = None) -> list[MemoryEvidence]:
    """The memory evidence of one rank, in launch order.

    launch -- only this launch; None: all

    Empty for correct programs. Cost: a pass over the launches of the rank.
    """
    return [one for one in _all(run, rank) if launch in (None, one.launch)]


@functools.lru_cache(4)
def _all(run: Run, rank: int) -> list[MemoryEvidence]:
    processes = dict.fromkeys([*run.processes(), *run.processes(OutOfBounds)])
    evidence = [one for process in processes if rank_of(process) == rank for one in _of(run, process)]
    return sorted(dict.fromkeys(evidence), key=lambda one: one.launch)


def wrong_accesses(run: Run) -> dict[str, str]:
    """The launches that access memory wrongly, and how: `{"3 softmax": "races"}`.

    A load outside of an argument and inside of its storage may be meant.
    """
    evidence = memory_evidence(run)
    how = {one.launch: _ACCESSES[one.kind] for one in evidence if one.kind in _ACCESSES}
    outside = [one for process in run.processes(OutOfBounds) for one in run.out_of_bounds(process)]
    how |= {one.launch: "stores outside of an argument" for one in outside if one.access == "store"}
    how |= {one.launch: "leaves an argument's storage" for one in outside if not one.inside}
    return {f"{one.index} {one.kernel_name}": how[one.index] for one in run.launches() if one.index in how}


def other_arguments(run: Run) -> dict[int, str]:
    """The launches of kernels that were compiled for other arguments, and for which ones."""
    evidence = (one for one in memory_evidence(run) if one.kind == _SPECIALISED)
    return {one.launch: one.what for one in evidence}


def evidence_sentence(one: MemoryEvidence) -> str:
    """A line for people: `race: program (1, 0, 0) reads x[256], ... (case.py:9)`."""
    return f"{one.kind}: {one.what}" + (f" ({one.where})" if one.where else "")


def _of(run: Run, process: str) -> Iterator[MemoryEvidence]:
    yield from run.view(process, MemoryEvidence, MemoryEvidence)
    yield from (_outside(one) for one in run.out_of_bounds(process))
    accesses = {one.launch: one for one in run.view(process, Access, Access)}
    storages = {number: (one.address, one.nbytes) for number, one in run.storages(process).items()}
    joiner = run.joiner(process)
    sizes = FirstShapes()
    clean: set[tuple[int, tuple[int, ...]]] = set()  # signatures and storages of launches without evidence
    typed: set[int] = set()  # signatures with the dtypes that their kernels were compiled for
    for line in run.view(process, LaunchLine, LaunchLine):
        access, memory = accesses.get(line.index), (line.signature, line.storages)
        if access is None and memory in clean:
            continue
        launch = joiner.launch(Row(line))  # no digest is evidence
        seen = [*sizes.of(launch, access)]
        if launch.kernel.kind == "triton" and launch.kernel.stages.get("ttir"):
            if line.signature not in typed:
                retyped = [*_retyped(run, launch)]
                if not retyped:
                    typed.add(line.signature)
                seen += retyped
            if access is None:  # the interpreter did not see what it accessed
                seen += _unseen(run, launch, storages)
        if access is None and not seen:
            clean.add(memory)
        yield from seen


def _retyped(run: Run, launch: KernelLaunch) -> Iterator[MemoryEvidence]:
    # imports numpy, which takes longer than reading many a run
    from tracing.analyze.memory.launch_memory import retyped

    yield from retyped(run, launch)


def _unseen(
    run: Run, launch: KernelLaunch, storages: Mapping[int, tuple[int, int]]
) -> Iterator[MemoryEvidence]:
    from tracing.analyze.memory.launch_memory import unseen_launch

    yield from unseen_launch(run, launch, storages)


def _outside(one: OutOfBounds) -> MemoryEvidence:
    return MemoryEvidence(one.launch, "out of bounds", (one.argument,), one.what, one.where)
