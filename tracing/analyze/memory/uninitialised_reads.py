"""Find the kernels that read elements which nothing wrote.

A kernel may mean it, and drop the values: so this is no evidence of wrong use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tracing.model import Access, LaunchLine
from tracing.store import Run, rank_of

_Elements: TypeAlias = tuple[int, int]  # the first, and how many


@dataclass(frozen=True, slots=True)
class UninitialisedRead:
    """An argument of a kernel of which launches read elements that were allocated and not written."""

    rank: int
    launch: int  # the first that reads some
    kernel: str
    argument: str
    first: int  # such element that this launch reads, in logical order
    count: int  # of such elements that it reads
    launches: int  # how many launches of this kernel read some


def uninitialised_reads(run: Run) -> Iterator[UninitialisedRead]:
    """One for each kernel and argument, by process, in the order of their launches.

    Empty where no interpreter observed the accesses: on a GPU.

    Cost: a pass over the accesses, and one over the launches if there is any such read.
    """
    for process in run.processes(Access):
        reading = {
            one.launch: one.uninitialised for one in run.view(process, Access, Access) if one.uninitialised
        }
        if reading:
            yield from _of(run, process, reading)


def _of(
    run: Run, process: str, reading: Mapping[int, Mapping[int, _Elements]]
) -> Iterable[UninitialisedRead]:
    signatures = run.signatures(process)
    reads: dict[tuple[str, str], UninitialisedRead] = {}
    for line in run.view(process, LaunchLine, LaunchLine):
        if line.index not in reading or line.signature not in signatures:
            continue
        kernel, signature = signatures[line.signature]
        for position, elements in reading[line.index].items():
            of = kernel.name, signature.args[position].name
            earlier = reads.get(of)
            if earlier is None:
                reads[of] = UninitialisedRead(rank_of(process), line.index, *of, *elements, 1)
            else:
                reads[of] = replace(earlier, launches=earlier.launches + 1)
    return reads.values()
