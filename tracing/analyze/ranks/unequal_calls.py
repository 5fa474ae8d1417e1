"""Find operators outside of Triton that a line of the program calls more often on some ranks than on others.

Such a call may be meant, as that of a first rank which logs a loss; or it changes what should be equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracing.analyze.runs.program_operators import ASYNCHRONOUS, is_check, is_of_program
from tracing.model import Operator, OperatorCall
from tracing.store import Run, rank_of


def unequal_calls(run: Run, ranks: Sequence[int]) -> list[str]:
    """A sentence that names the first such line of the program; empty if there is none.

    Cost: a pass over the operators of each rank.
    """
    counts = {rank: Counter(f"{one.name} at {one.site}" for one in _calls(run, rank)) for rank in ranks}
    first = ranks[0]
    for call in dict.fromkeys(call for rank in ranks for call in counts[rank]):
        unlike = next((rank for rank in ranks if counts[rank][call] != counts[first][call]), None)
        if unlike is not None:
            times = f"{counts[first][call]} times on rank {first}, {counts[unlike][call]} on rank {unlike}"
            return [f"operators that ranks call unequally often, as {call}: {times}"]
    return []


def _calls(run: Run, rank: int) -> Iterator[Operator]:
    for process in run.processes(OperatorCall):
        if rank_of(process) == rank:
            yield from filter(_computes, run.operators(process))


def _computes(call: Operator) -> bool:
    known = call.writes and not (call.allocates or call.from_python or call.name.startswith(ASYNCHRONOUS))
    writes = [one.tensor for one in call.writes]
    return bool(known) and is_of_program(call.site) and not is_check(call.name, writes)
