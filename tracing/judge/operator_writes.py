"""Names the operator outside of Triton that overwrote memory between two launches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tracing.model import OperatorCall, OperatorSignature
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class OperatorWrites:
    """The calls of operators of one process, as far as the run has them."""

    run: Run
    process: str

    def first(self, storages: Collection[int | None], launches: tuple[int, int]) -> str:
        """The first operator that writes to one of some storages; "": none.

        launches -- it was called when the process had made more launches than the first number, and at most
                    the second
        """
        signatures = self._signatures()
        for call in self.run.view(self.process, OperatorCall, OperatorCall):
            known = signatures.get(call.signature)
            if known is None or not launches[0] < call.launch <= launches[1]:
                continue
            if {*call.storages[len(known.reads) :]} & {*storages}:
                return known.name.rpartition(".")[0] or known.name
        return ""

    def _signatures(self) -> Mapping[int, OperatorSignature]:
        kinds = self.run.view(self.process, OperatorSignature, OperatorSignature)
        return {one.id: one for one in kinds}
