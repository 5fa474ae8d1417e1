"""Reads one process in launch order: each launch, and the writes that produced its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import msgspec

from tracing.analyze.compare.signature_pair import Signatures, signature_of
from tracing.analyze.compare.timeline.chains import Chains
from tracing.analyze.compare.timeline.launch_facts import LaunchFacts
from tracing.analyze.compare.timeline.memory import (
    FirstAccess,
    Input,
    MemoryWrites,
    PlacedTensor,
    Sources,
    Write,
    WriteKind,
    WrittenBits,
    span,
)
from tracing.analyze.compare.timeline.operator_calls import CalledOperators
from tracing.analyze.compare.timeline.timeline_step import Position, TimelineStep, storages_of
from tracing.analyze.compare.timeline.touched_memory import (
    SignatureMemory,
    TouchedArgument,
    touched_memory,
    with_writer,
)
from tracing.digest.columns import Row
from tracing.model import (
    Kernel,
    LaunchLine,
    OperatorCall,
    Reread,
    Signature,
    Start,
    Storage,
    TensorMeta,
    TensorValue,
)
from tracing.store import Run, rank_of
from tracing.views import element_bytes, extent

_NEAR = 8  # operators since the previous launch, by which a launch is identified
_PASSING = "random generator"  # the state of a generator is a copy, whose memory is used anew
_UNKNOWN = 44  # bits: storages of a run without addresses lie this far apart

_REPEATED = 10_000  # launches with their tensors that are remembered

Covers: TypeAlias = Callable[[int, str, str, int], bool]


class Timeline:
    """The launches of one process, from one of them on; raises Problem where the run is damaged."""

    def __init__(self, run: Run, process: str, known: Signatures) -> None:
        self._run, self._process, self._known = run, process, known
        self.memory = MemoryWrites()
        self._chains = Chains()
        self._storages = {one.id: one for one in run.view(process, Storage, Storage)}
        self._addresses = {number: one.address for number, one in self._storages.items()}
        self._births: dict[int, FirstAccess] = {}  # by storage: the first access to it
        self._writes = 0
        self._begin()
        self._plans: dict[object, SignatureMemory] = {}
        self._repeated: dict[object, list[int]] = {}  # addresses, of launches with their tensors
        self.operators = CalledOperators(run, process)
        self._facts = LaunchFacts(run, process)

    def _begin(self) -> None:
        # what the case began with
        self._started: list[tuple[int, str]] = []
        for number, start in enumerate(self._run.view(self._process, Start, Start)):
            value = start.value
            lasting = isinstance(value, TensorValue) and value.address and not start.name.endswith(_PASSING)
            if lasting and isinstance(value, TensorValue):
                left = WrittenBits(value.address, value.meta, value.digest.bits)
                self._started.append((value.address, start.name))
                self.memory.write(*_extent(left), Write(
                    "start", number, 0, start.name, "", value.address, value.meta, left
                ))  # fmt: skip

    def pass_over(self, start: Position, stop: Position) -> int:
        """Note the writes of launches that are equal in both runs; returns the index of the next launch."""
        index = -1
        rows = self._run.rows(self._process, start.launches, start.lines)
        for row in islice(rows, stop.launches - start.launches):
            self._pass(row)
            index = row.line.index
        return index + 1

    def steps(
        self,
        start: Position,
        covers: Covers | None = None,
        chosen: Callable[[int], bool] | None = None,
    ) -> Iterator[TimelineStep]:
        """The launches from a position on.

        covers -- called for each launch with index, kernel, phase and rank; if false, the launch is left out
        chosen -- called with the number of each launch; likewise
        """
        rank = rank_of(self._process)
        for row in self._run.rows(self._process, start.launches, start.lines):
            if chosen is not None and not chosen(row.line.index):
                continue
            kernel, signature = signature_of(row, self._known, self._run)
            if covers is None or covers(row.line.index, kernel.name, signature.phase, rank):
                yield self._step(row)
        self.finish()

    def finish(self) -> None:
        """Note the operators after the last launch."""
        for call in self.operators.before(None):
            self._apply(call)

    def born(self, tensor: PlacedTensor) -> FirstAccess | None:
        """The identity of a tensor that is comparable between runs; None: the tensor was not seen."""
        birth = self._births.get(tensor.storage)
        return birth and birth._replace(start=extent(tensor.meta)[0])

    def placed(self, address: int, meta: TensorMeta) -> PlacedTensor | None:
        """The tensor at an address, after all launches; `meta` without its offset."""
        holding = [
            number
            for number, one in self._storages.items()
            if one.address <= address < one.address + max(one.nbytes, 1)
        ]
        if not holding:
            return None
        number = max(holding)  # the last storage at that address
        offset = (address - self._addresses[number]) // element_bytes(meta.dtype)
        return PlacedTensor(number, msgspec.structs.replace(meta, offset=offset))

    def passed(self, launch: int, position: int) -> PlacedTensor | None:
        """The tensor that a launch was passed as an argument. Reads the launches up to it, 1 µs each."""
        line = next(
            (one for one in self._run.view(self._process, LaunchLine, LaunchLine) if one.index == launch),
            None,
        )
        if line is None or line.signature not in self._known:
            return None
        tensors = storages_of(self._known[line.signature][1], line.storages)
        return next((PlacedTensor(storage, meta) for n, meta, storage in tensors if n == position), None)

    def _step(self, row: Row) -> TimelineStep:
        called = list(self.operators.before(row.line.index))
        for call in called:
            self._apply(call)
        kernel, signature = signature_of(row, self._known, self._run)
        plan = self._plan(row, signature)
        addresses = self._passed_addresses(row)
        access, outside, rereads = self._facts.of(row.line.index)
        sources = {
            touched.position: self._sources(touched, addresses[touched.tensor], row, kernel)
            for touched in plan.reads
            if touched.tensor < len(addresses)
        }
        rereads = tuple(one for one in rereads if self._is_on_top(one, sources))
        names = tuple([self.operators.name(call) for call in called[-_NEAR:]])
        step = TimelineStep(row, kernel, signature, addresses, sources, access, outside, rereads, names)
        self._launched(step, plan)
        return step

    def _pass(self, row: Row) -> None:
        # like `_step`, without the fields that only a caller reads
        for call in self.operators.before(row.line.index):
            self._apply(call)
        kernel, signature = signature_of(row, self._known, self._run)
        plan = self._plan(row, signature)
        key = (signature.id, row.before, row.after, *row.line.storages)
        addresses = self._repeated.get(key)
        if addresses is None:  # otherwise its inputs have writers, which `memory` keeps
            addresses = self._passed_addresses(row)
            for touched in plan.reads:
                if touched.tensor < len(addresses) and not self._known_to_memory(touched, addresses):
                    self._sources(touched, addresses[touched.tensor], row, kernel)
            if len(self._repeated) >= _REPEATED:
                self._repeated.clear()
            self._repeated[key] = addresses
        access, outside, _ = self._facts.of(row.line.index)
        self._launched(TimelineStep(row, kernel, signature, addresses, {}, access, outside), plan)

    def _passed_addresses(self, row: Row) -> list[int]:
        # of the storages of a launch's tensors; those that are new get an identity
        for position, storage in enumerate(row.line.storages):
            if storage not in self._births:
                self._births[storage] = self._birth(
                    storage, FirstAccess("launch", "", "", row.line.index, position)
                )
        return [self._address(number) for number in row.line.storages]

    def _known_to_memory(self, touched: TouchedArgument, addresses: Sequence[int]) -> bool:
        address = addresses[touched.tensor]
        return self.memory.has(address + touched.start, address + touched.stop)

    def _plan(self, row: Row, signature: Signature) -> SignatureMemory:
        key = (signature.id, row.before, row.after)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = touched_memory(row, signature)
        return plan

    def _birth(self, storage: int, touched: FirstAccess) -> FirstAccess:
        start = self._address(storage)
        stop = start + (self._storages[storage].nbytes if storage in self._storages else 0)
        names = (name for address, name in self._started if start <= address < stop)
        name = next(names, None)
        return touched if name is None else FirstAccess("start", name, "", 0, 0)

    def _address(self, storage: int) -> int:
        known = self._addresses.get(storage)
        return storage + 1 << _UNKNOWN if known is None else known

    def _sources(self, touched: TouchedArgument, address: int, row: Row, kernel: Kernel) -> Sources:
        start, stop = address + touched.start, address + touched.stop
        sources = self.memory.sources(start, stop, touched.meta)
        if None in sources:  # the first read of memory without a recorded writer
            left = WrittenBits(start, touched.meta, row.bits(touched.before, touched.before + 1))
            self.memory.fill(start, stop, Write(
                "seen", row.line.index, touched.position, kernel.name, touched.name, start, touched.meta,
                left, row.line.stream,
            ))  # fmt: skip
        writer = row.line.writers.get(touched.position)
        named = writer is not None and not self.operators.signatures
        return with_writer(sources, str(writer), touched, start) if named else sources

    def _is_on_top(self, reread: Reread, sources: Mapping[int, Sources]) -> bool:
        # a later write into a view that was read once more does not affect the part that a launch reads
        for one in sources.get(reread.position, ()):
            if one is not None and (one.number, one.position) == (reread.writer, reread.argument):
                left = one.left
                lie = self.memory.sources(*_extent(left), left.view)
                return all(other is not None and other.order <= one.order for other in lie)
        return False

    # ---- writes

    def _launched(self, step: TimelineStep, plan: SignatureMemory) -> None:
        for touched in plan.writes:
            if touched.tensor < len(step.addresses):
                self._wrote(step, touched, step.addresses[touched.tensor])
        for one in step.out_of_bounds:
            if one.access == "store":
                region = _bytes(one.stop - one.start)
                left = WrittenBits(one.start, region, "")
                self._writes += 1
                self.memory.write(one.start, one.stop, Write(
                    "launch", step.index, -1, step.kernel.name, one.argument, one.start, region, left,
                    step.row.line.stream, whole=False, out_of_bounds=True, order=self._writes,
                ))  # fmt: skip

    def _wrote(self, step: TimelineStep, touched: TouchedArgument, address: int) -> None:
        row, access, position = step.row, step.access, touched.position
        start, stop = address + touched.start, address + touched.stop
        after = row.bits(touched.after, touched.after + 1)
        changed = not after or row.bits(touched.before, touched.before + 1) != after
        whole = access is None or position not in access.partly
        self._writes += 1
        write = Write(
            "launch", row.line.index, position, step.kernel.name, touched.name, start, touched.meta,
            WrittenBits(start, touched.meta, after), row.line.stream, whole, changed, False, self._writes,
        )  # fmt: skip
        ranges = access.written_ranges.get(position) if access else None
        if not ranges:
            self.memory.write(start, stop, write)
            return
        for first, last in zip(ranges[::2], ranges[1::2], strict=True):
            part = write._replace(address=start + first, region=_bytes(last - first), whole=True)
            self.memory.write(start + first, start + last, part)

    def _apply(self, call: OperatorCall) -> None:
        signature = self.operators.signatures.get(call.signature)
        if signature is None:
            return
        addresses = [self._address(number) for number in call.storages]
        digests = self.operators.digests(call.index)
        known = dict(enumerate(digests.before)) if digests else {}
        inputs = tuple(
            Input(
                span(address, meta)[0],
                self._chains.followed(self.memory.sources(*span(address, meta), meta)),
                PlacedTensor(storage, meta),
                known[position].bits if position in known else "",
            )
            for position, (address, storage, meta) in enumerate(
                zip(addresses, call.storages, signature.reads, strict=False)
            )
        )
        before, arguments = self.operators.counted(call), signature.arguments_of(call)
        depth = 1 + max((one.depth for entry in inputs for one in entry.sources if one), default=0)
        for position, storage in enumerate(call.storages):
            if storage not in self._births:
                touched = FirstAccess(
                    "operator", signature.name, arguments, before, position, earlier=call.index
                )
                self._births[storage] = self._birth(storage, touched)
        results = list(zip(addresses[len(signature.reads) :], signature.writes, strict=False))
        for position, (address, meta) in enumerate(results):
            start, stop = span(address, meta)
            bits = digests.after[position].bits if digests and position < len(digests.after) else ""
            kind: WriteKind = "allocation" if signature.allocates else "operator"
            self._writes += 1
            self.memory.write(start, stop, Write(
                kind, call.index, position, signature.name, arguments, start, meta,
                WrittenBits(start, meta, bits), reads=inputs, depth=depth, order=self._writes, call=before,
                site=self.operators.site(call),
            ))  # fmt: skip


def _extent(left: WrittenBits) -> tuple[int, int]:
    start, stop = extent(left.view)
    return left.address, left.address + stop - start


def _bytes(count: int) -> TensorMeta:
    return TensorMeta((count,), (1,), "uint8", "")
