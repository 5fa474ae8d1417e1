"""Find operators outside of Triton that read equal bits on several ranks, and wrote other bits on some.

Calls are equal if operator, arguments, layouts and the bits that they read are, wherever the ranks make them:
nothing else may change their results. Only the first result counts: others may be reserved for a backward
pass and hold what the memory held before. Left out are operators that draw random numbers, collectives,
operators of other libraries than torch, whose results may depend on the rank, and copies that may arrive
later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from tracing.analyze.ranks.operator_arguments import without_device
from tracing.analyze.ranks.rank_divergence import RankDivergence, groups_of
from tracing.analyze.ranks.rank_events import RankEvent
from tracing.model import Operator, OperatorCall, OperatorDigests, TensorMeta
from tracing.store import Run, rank_of

_NOT_WAITED_FOR = "non_blocking=True"


class UnlikeOperators:
    """The operators of some ranks of a run; `compared` calls were equal on at least two ranks.

    Cost: a pass over the operators of each rank, if they have digests; memory: some 300 bytes a call.
    """

    def __init__(self, run: Run, ranks: Sequence[int]) -> None:
        self._run, self._ranks = run, ranks
        self._results: dict[bytes, dict[int, str]] = {}  # of equal calls: by rank the bits of the first one
        self.compared = 0

    def divergences(self) -> list[RankDivergence]:
        """The operators with unequal results, by the number of launches before them."""
        unlike: dict[bytes, Operator] = {}
        ranks: dict[bytes, int] = {}
        for rank, call in ((one, call) for one in self._ranks for call in self._calls(one)):
            key, bits = _key(call), _bits(call)
            known = self._results.setdefault(key, {})
            self.compared += len(known) == 1 and rank not in known
            known.setdefault(rank, bits)
            if known[rank] != next(iter(known.values())) and key not in unlike:
                unlike[key], ranks[key] = call, rank
        first = sorted(unlike, key=lambda key: (unlike[key].launch, unlike[key].index))
        return [
            RankDivergence("operator", _event(unlike[key], ranks[key]), groups_of(self._results[key]))
            for key in first
        ]

    def _calls(self, rank: int) -> Iterator[Operator]:
        for process in self._run.processes(OperatorCall):
            if rank_of(process) == rank and process in self._run.processes(OperatorDigests):
                yield from filter(_is_determined, self._run.operators(process))


def _event(call: Operator, rank: int) -> RankEvent:
    return RankEvent(call.name, call.launch, 0, rank=rank, site=call.site, operator=call.index)


def _is_determined(call: Operator) -> bool:
    # whether its first result depends on nothing but what it reads, and both have digests
    tensors = (*call.reads, *call.writes[:1])
    known = bool(call.reads and call.writes) and all(one.digest and one.digest.bits for one in tensors)
    other = call.allocates or call.random or call.from_python or _NOT_WAITED_FOR in call.arguments
    return known and not other and call.name.startswith("aten::")


def _bits(call: Operator) -> str:
    digest = call.writes[0].digest
    return digest.bits if digest else ""


def _key(call: Operator) -> bytes:
    reads = [(one.digest.bits if one.digest else "", *_layout(one.tensor)) for one in call.reads]
    writes = [_layout(one.tensor) for one in call.writes]
    text = repr((call.name, without_device(call.arguments), reads, writes))
    return blake2b(text.encode(), digest_size=16).digest()


def _layout(meta: TensorMeta) -> tuple[object, ...]:
    # without the device: each rank has its own; the offset decides about alignment
    return meta.shape, meta.stride, meta.dtype, meta.offset
