"""The calls of operators outside of Triton by one process, by what two runs can have in common of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from tracing.analyze.runs.program_operators import ASYNCHRONOUS
from tracing.model import CallSite, OperatorCall, OperatorDigests, OperatorSignature, TensorMeta
from tracing.store import Run
from tracing.views import extent, relation, same_digest


class CallKind(NamedTuple):
    """What two calls of a pair have in common; where their tensors begin in a storage does not matter."""

    name: str  # of the operator, "aten::add.Tensor"
    reads: tuple[TensorMeta, ...]
    writes: tuple[TensorMeta, ...]
    thread: int


class Called(NamedTuple):
    """One call of an operator."""

    call: OperatorCall
    signature: OperatorSignature
    site: CallSite | None

    @property
    def arguments(self) -> str:
        """Its arguments that are no tensors, as text."""
        return self.signature.arguments_of(self.call)

    @property
    def title(self) -> str:
        """`operator #7 aten::add.Tensor, called at train.py:12`."""
        name = f"operator #{self.call.index} {self.signature.name}"
        return f"{name}, called at {self.site}" if self.site else name


CallOfKind: TypeAlias = tuple[CallKind, Called]


class ComputingCalls:
    """The calls of one process that compute: those that allocate, and collectives, are left out."""

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self._signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._sites = run.sites(process)
        digests = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in digests}
        self.counts = Counter(kind for kind, _ in self.called())  # of calls, by kind

    def called(self) -> Iterator[CallOfKind]:
        """Each call with its kind, in the order in which they were made."""
        kinds: dict[tuple[int, int], CallKind] = {}
        for call in self._run.view(self._process, OperatorCall, OperatorCall):
            signature = self._signatures.get(call.signature)
            if signature is None or signature.allocates or not signature.writes:
                continue
            if signature.name.startswith(ASYNCHRONOUS):
                continue
            key = call.signature, call.thread
            if key not in kinds:
                reads, writes = map(_without_offsets, (signature.reads, signature.writes))
                kinds[key] = CallKind(signature.name, reads, writes, call.thread)
            yield kinds[key], Called(call, signature, self._sites.get(call.site))

    def last_writer(self, reader: Called, position: int) -> CallOfKind | None:
        """The last call that wrote what another one reads; None: no operator did, or it is unknown.

        position -- of the input, among those of `reader`
        """
        last = None
        for kind, one in self.called():
            if one.call.index >= reader.call.index:
                break
            if next(_overlapping(one, reader, position), None) is not None:
                last = kind, one
        return last if last is None or self._left(last[1], reader, position) else None

    def _left(self, writer: Called, reader: Called, position: int) -> bool:
        # False: what is read has other bits than the call left, so something else wrote it later
        read, left = self.digests(reader), self.digests(writer)
        if read is None or left is None or position >= len(read.before):
            return True
        meta, bits = reader.signature.reads[position], read.before[position].bits
        for number in _overlapping(writer, reader, position):
            result = writer.signature.writes[number]
            alike = extent(result)[0] == extent(meta)[0] and same_digest(result, meta)
            if alike and number < len(left.after) and left.after[number].bits not in ("", bits):
                return False
        return True

    def called_by_name(self, name: str) -> int:
        """How often the operators of a name are called."""
        return sum(count for kind, count in self.counts.items() if kind.name == name)

    def digests(self, one: Called) -> OperatorDigests | None:
        """The digests that were taken before and after a call; None: there are none."""
        return self._digests.get(one.call.index)


def _overlapping(writer: Called, reader: Called, position: int) -> Iterator[int]:
    # the results of a call that hold bytes of an input of another call
    storage, meta = reader.call.storages[position], reader.signature.reads[position]
    written = writer.call.storages[len(writer.signature.reads) :]
    for number, (there, result) in enumerate(zip(written, writer.signature.writes, strict=False)):
        distance = extent(meta)[0] - extent(result)[0]
        if there == storage and relation(meta, result, distance) != "disjoint":
            yield number


def _without_offsets(metas: Sequence[TensorMeta]) -> tuple[TensorMeta, ...]:
    return tuple(replace(one, offset=0) for one in metas)
