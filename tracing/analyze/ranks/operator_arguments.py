"""Find operators outside of Triton that ranks called with other arguments before an update of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from tracing.model import CallSite, Operator, OperatorCall
from tracing.store import Run, rank_of

_MOST = 3  # calls that are named
_DEVICE = re.compile(r"\bdevice=device\([^)]*\)")  # each rank has its own


@dataclass(frozen=True, slots=True)
class UnlikeArguments:
    """One call of an operator that ranks made with other arguments that are no tensors."""

    name: str  # "aten::add_.Tensor"
    by_rank: Mapping[int, str]
    site: CallSite | None


def unlike_arguments(run: Run, launches: Mapping[int, int]) -> tuple[UnlikeArguments, ...]:
    """The first calls with other arguments between the last launch before a landmark and the next launch.

    launches -- by rank: the number of launches before the landmark

    Empty where ranks call other operators. Cost: a pass over the operators of each rank up to the landmark.
    """
    calls = {rank: _calls(run, rank, launch) for rank, launch in launches.items()}
    names = {tuple(one.name for one in made) for made in calls.values()}
    return tuple(islice(_unlike(calls), _MOST)) if len(names) == 1 else ()


def _calls(run: Run, rank: int, launch: int) -> Sequence[Operator]:
    process = next((one for one in run.processes(OperatorCall) if rank_of(one) == rank), None)
    if process is None:
        return []  # recorded with `--operators none`
    until = takewhile(lambda one: one.launch <= launch, run.operators(process))
    return [one for one in until if one.launch == launch and one.reads]


def _unlike(calls: Mapping[int, Sequence[Operator]]) -> Iterator[UnlikeArguments]:
    seen = set()
    for made in zip(*calls.values(), strict=True):
        by_rank = dict(zip(calls, (without_device(one.arguments) for one in made), strict=True))
        key = (made[0].name, made[0].site)  # later steps, and other parameters, repeat the call
        if len(set(by_rank.values())) > 1 and key not in seen:
            seen.add(key)
            yield UnlikeArguments(made[0].name, by_rank, made[0].site)


def without_device(arguments: str) -> str:
    """The arguments of a call without the device, of which each rank has its own."""
    return _DEVICE.sub("", arguments)
