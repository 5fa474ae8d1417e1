"""What operators outside of Triton wrote between launches: which one, and with which layout."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from tracing.model import OperatorCall, OperatorSignature, TensorMeta
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class OperatorWrites:
    """The calls of operators of one process, as far as the run has them."""

    run: Run
    process: str
    _allocations: dict[int, list[int]] = field(default_factory=dict)  # launches before each, by storage
    _layouts: dict[int, list[tuple[int, TensorMeta]]] = field(default_factory=dict)  # by storage, in order

    def allocated(self, storage: int, launches: tuple[int, int]) -> bool:
        """True if a storage was allocated between two launches, or if nothing is known about it."""
        if not self._allocations:
            self._allocations.update(self._allocated())
        made = self._allocations.get(storage)
        return made is None or any(launches[0] < one <= launches[1] for one in made)

    def _allocated(self) -> Mapping[int, list[int]]:
        signatures = self._signatures()
        made: defaultdict[int, list[int]] = defaultdict(list)
        for call in self.run.view(self.process, OperatorCall, OperatorCall):
            if (known := signatures.get(call.signature)) is not None:
                for storage in call.storages:
                    made[storage] += [call.launch] if known.allocates else []
        return made

    def layout(self, storage: int, launch: int) -> TensorMeta | None:
        """The layout with which an operator last wrote to a storage before a launch; None: none did."""
        if not self._layouts:
            self._layouts.update(self._written())
        written = self._layouts.get(storage, [])
        last = bisect_right(written, launch, key=itemgetter(0))
        return written[last - 1][1] if last else None

    def _written(self) -> Mapping[int, list[tuple[int, TensorMeta]]]:
        signatures = self._signatures()
        written: defaultdict[int, list[tuple[int, TensorMeta]]] = defaultdict(list)
        for call in self.run.view(self.process, OperatorCall, OperatorCall):
            if (known := signatures.get(call.signature)) is None:
                continue
            for storage, meta in zip(call.storages[len(known.reads) :], known.writes, strict=False):
                written[storage].append((call.launch, meta))
        return written

    def written_before(self, launch: int, thread: int) -> Sequence[tuple[str, int]]:
        """The operators that a thread called between a launch and the one before it, in order.

        Each with the storage of the only tensor that it writes: ("aten::mm", 3), of `mm.out`, too.
        """
        signatures = self._signatures()
        calls = self.run.view(self.process, OperatorCall, OperatorCall)
        known = ((one, signatures.get(one.signature)) for one in calls if one.launch == launch)
        return [
            (made.name.partition(".")[0], call.storages[len(made.reads)])
            for call, made in known
            if made is not None and call.thread == thread and len(call.storages) == len(made.reads) + 1
        ]

    def first(self, storages: Collection[int | None], launches: tuple[int, int]) -> str:
        """The first operator that writes to one of some storages, and does not allocate it; "": none.

        launches -- it was called when the process had made more launches than the first number, and at most
                    the second
        """
        signatures = self._signatures()
        for call in self.run.view(self.process, OperatorCall, OperatorCall):
            known = signatures.get(call.signature)
            if known is None or known.allocates or not launches[0] < call.launch <= launches[1]:
                continue
            if {*call.storages[len(known.reads) :]} & {*storages}:
                return known.name.rpartition(".")[0] or known.name
        return ""

    def _signatures(self) -> Mapping[int, OperatorSignature]:
        kinds = self.run.view(self.process, OperatorSignature, OperatorSignature)
        return {one.id: one for one in kinds}
