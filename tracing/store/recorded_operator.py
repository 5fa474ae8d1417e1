"""Collects the facts about one call of an operator outside of Triton that a repro needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracing.errors import Problem
from tracing.model import Blob, KeptOperatorTensor, Operator, OperatorSignature
from tracing.store.reader import Run, rank_of


@dataclass(frozen=True, slots=True)
class RecordedOperator:
    """One call of an operator, with the contents of its inputs."""

    run: Run
    call: Operator
    inputs: Mapping[int, Blob]  # contents of the tensors that it read, by position: safetensors files

    @property
    def missing(self) -> tuple[int, ...]:
        """Positions of tensors that it read, and whose contents were not kept."""
        return tuple(i for i in range(len(self.call.reads)) if i not in self.inputs)

    def contents(self) -> dict[int, bytes]:
        """The safetensors files of the kept inputs, by position; raises Problem if one is missing."""
        return {position: self.run.bytes(blob) for position, blob in self.inputs.items()}


def recorded_operator(run: Run, index: int, rank: int | None = None) -> RecordedOperator:
    """Collect what is needed to call operator `index` of a run once more.

    rank -- the rank of the call; None: the only process with such a call

    Raises Problem, with the reason, if there is no such call, or if another user recorded the run.
    """
    recorded = find_operator(run, index, rank)
    run.require_trust(f"a call of {recorded.call.name}({recorded.call.arguments})")
    return recorded


def find_operator(run: Run, index: int, rank: int | None) -> RecordedOperator:
    """Call `index` of an operator of a run, to be read and not executed; arguments as `recorded_operator`."""
    processes = [one for one in run.processes(OperatorSignature) if rank in (None, rank_of(one))]
    having = [(one, call) for one in processes for call in run.operators(one) if call.index == index]
    lists = f"`tracing show {run.path} --operators` lists them"
    if len(having) > 1:
        raise Problem(
            f"{len(having)} processes of {run.path} have an operator {index}",
            f"name its rank: `--rank R`; {lists}",
        )
    if not having:
        last = max((call.index for one in processes for call in run.operators(one)), default=-1)
        if last < 0:
            record = "`tracing run --operators digests --keep-inputs` records operators"
            raise Problem(f"{run.path} has no operator {index}: it has none", record)
        raise Problem(f"{run.path} has no operator {index}: its operators are 0 to {last}", lists)
    process, call = having[0]
    kept = run.view(process, KeptOperatorTensor, KeptOperatorTensor)
    return RecordedOperator(run, call, {one.position: one.blob for one in kept if one.operator == index})
