"""Reads one process in launch order: each launch, and the writes that produced its inputs."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from tracing.analyze.align.launch_matching import Queue
from tracing.analyze.compare.memory import (
    Birth,
    Input,
    Left,
    MemoryWrites,
    Placed,
    Sources,
    Write,
    WriteKind,
    span,
)
from tracing.analyze.compare.signature_pair import Signatures, signature_of
from tracing.digest.columns import Row
from tracing.model import (
    Access,
    Argument,
    Kernel,
    LaunchLine,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    OutOfBounds,
    Reread,
    Signature,
    Start,
    Storage,
    TensorMeta,
    TensorValue,
)
from tracing.store import Run, rank_of
from tracing.store.joins import in_step
from tracing.views import element_bytes, extent, relation

DEEP = 64  # operators in a row through which a value is followed back
_NEAR = 8  # operators before a launch, since the launch before it, that it is known by
_PASSING = "random generator"  # the state of a generator is a copy, whose memory is used anew
_UNKNOWN = 44  # bits: storages of a run without addresses lie this far apart


class Position(NamedTuple):
    """The numbers of launches of a process, and of lines of their digests, before a position."""

    launches: int = 0
    lines: int = 0


Covers: TypeAlias = Callable[[int, str, str, int], bool]


@dataclass(slots=True)
class TimelineStep:
    """A launch, and where what it reads came from."""

    row: Row
    kernel: Kernel
    signature: Signature
    addresses: Sequence[int]  # of the storages of its tensors
    sources: Mapping[int, Sources]  # by position of the argument that it reads
    access: Access | None = None  # None: only digests are known
    out_of_bounds: tuple[OutOfBounds, ...] = ()
    rereads: tuple[Reread, ...] = ()
    operators: tuple[tuple[str, str], ...] = ()  # the last ones called before: names, arguments

    @property
    def index(self) -> int:
        return self.row.line.index

    @property
    def ends_line(self) -> bool:
        """True if its digests are the last ones in a line."""
        batch = self.row.batch
        return batch is not None and batch.launches[-1] == self.index

    @property
    def queue(self) -> Queue:
        return self.row.line.stream, self.row.line.thread

    def tensor(self, position: int) -> Placed:
        """The storage and the layout of an argument."""
        return next(
            Placed(storage, meta)
            for n, meta, storage in _storages_of(self.signature, self.row.line.storages)
            if n == position
        )

    def address(self, position: int) -> int:
        """The address of the storage of an argument."""
        return next(address for n, _, address in tensors_of(self.signature, self.addresses) if n == position)

    def overlaps(self) -> tuple[tuple[str, str, int], ...]:
        """The arguments that share bytes, and how many bytes lie between their first elements."""
        if len(set(self.addresses)) == len(self.addresses):
            return ()
        ranges = [one[1:] for one in self.ranges()]
        return tuple(
            (name, other_name, other - address)
            for n, (address, meta, name) in enumerate(ranges)
            for other, other_meta, other_name in ranges[n + 1 :]
            if relation(other_meta, meta, other - address) != "disjoint"
        )

    def ranges(self) -> Iterator[tuple[bool, int, TensorMeta, str]]:
        """What the launch touches: whether it writes, address of the first element, layout, argument."""
        for _, arg, address in tensors_of(self.signature, self.addresses):
            assert arg.tensor is not None
            if arg.reads or arg.writes:
                yield arg.writes, span(address, arg.tensor)[0], arg.tensor, arg.name


class Timeline:
    """The launches of one process, from one of them on; raises Problem where the run is damaged."""

    def __init__(self, run: Run, process: str, known: Signatures) -> None:
        self._run, self._process, self._known = run, process, known
        self.memory = MemoryWrites()
        self._storages = {one.id: one for one in run.view(process, Storage, Storage)}
        self._addresses = {number: one.address for number, one in self._storages.items()}
        self._births: dict[int, Birth] = {}  # by storage: what touched it first
        self._writes = 0
        self._begin()
        self._plans: dict[object, _Plan] = {}
        self._operators = _Operators(run, process)
        self._lines = _Lines(run, process)

    def _begin(self) -> None:
        # what the case began with
        self._started: list[tuple[int, str]] = []
        for number, start in enumerate(self._run.view(self._process, Start, Start)):
            value = start.value
            lasting = isinstance(value, TensorValue) and value.address and not start.name.endswith(_PASSING)
            if lasting and isinstance(value, TensorValue):
                left = Left(value.address, value.meta, value.digest.bits)
                self._started.append((value.address, start.name))
                self.memory.write(*_extent(left), Write(
                    "start", number, 0, start.name, "", value.address, value.meta, left
                ))  # fmt: skip

    def pass_over(self, start: Position, stop: Position) -> int:
        """Note who wrote what in launches that are equal in both runs; the index of the one that follows."""
        index = -1
        rows = self._run.rows(self._process, start.launches, start.lines)
        for row in islice(rows, stop.launches - start.launches):
            self._advance(row, look=False)
            index = row.line.index
        return index + 1

    def steps(self, start: Position, covers: Covers | None = None) -> Iterator[TimelineStep]:
        """The launches from a position on.

        covers -- asked for each with its index, kernel, phase and rank: one that it refuses is left out
        """
        rank = rank_of(self._process)
        for row in self._run.rows(self._process, start.launches, start.lines):
            kernel, signature = signature_of(row, self._known, self._run)
            if covers is None or covers(row.line.index, kernel.name, signature.phase, rank):
                yield self._advance(row, look=True)
        self.finish()

    def finish(self) -> None:
        """Take account of the operators that followed the last launch."""
        for call in self._operators.before(None):
            self._apply(call)

    def count(self, operator: Write, launch: int) -> int:
        """The number of equal calls of an operator before a launch."""
        return self._operators.count(operator.name, operator.argument, launch)

    def total(self, operator: Write) -> int:
        """How often an operator is called like this in the whole process."""
        return self._operators.total(operator.name, operator.argument)

    def born(self, tensor: Placed) -> Birth | None:
        """What a tensor is known by in both runs; None: it was not seen."""
        birth = self._births.get(tensor.storage)
        return birth and birth._replace(start=extent(tensor.meta)[0])

    def placed(self, address: int, meta: TensorMeta) -> Placed | None:
        """The tensor at an address, after all launches; `meta` without its offset."""
        holding = [
            number
            for number, one in self._storages.items()
            if one.address <= address < one.address + max(one.nbytes, 1)
        ]
        if not holding:
            return None
        number = max(holding)  # the last one that lay there
        offset = (address - self._addresses[number]) // element_bytes(meta.dtype)
        return Placed(number, msgspec.structs.replace(meta, offset=offset))

    def passed(self, launch: int, position: int) -> Placed | None:
        """The tensor that a launch was passed as an argument. Reads the launches up to it, 1 µs each."""
        line = next(
            (one for one in self._run.view(self._process, LaunchLine, LaunchLine) if one.index == launch),
            None,
        )
        if line is None or line.signature not in self._known:
            return None
        tensors = _storages_of(self._known[line.signature][1], line.storages)
        return next((Placed(storage, meta) for n, meta, storage in tensors if n == position), None)

    def digests_of(self, operator: Write) -> OperatorDigests | None:
        """The digests of an operator's call, if they were taken."""
        return self._operators.digests(operator.number)

    def _advance(self, row: Row, *, look: bool) -> TimelineStep:
        called = list(self._operators.before(row.line.index))
        for call in called:
            self._apply(call)
        kernel, signature = signature_of(row, self._known, self._run)
        plan = self._plan(row, signature)
        addresses = [self._address(number) for number in row.line.storages]
        for position, storage in enumerate(row.line.storages):
            if storage not in self._births:
                self._births[storage] = self._birth(
                    storage, Birth("launch", "", "", row.line.index, position)
                )
        access, outside, rereads = self._lines.of(row.line.index)
        sources: dict[int, Sources] = {}
        for touched in plan.reads:
            if touched.tensor < len(addresses) and (look or not self._known_to_memory(touched, addresses)):
                origin = self._sources(touched, addresses[touched.tensor], row, kernel)
                sources[touched.position] = origin
        rereads = tuple(one for one in rereads if look and self._is_on_top(one, sources))
        names = tuple([self._operators.name(call) for call in called[-_NEAR:]]) if look else ()
        step = TimelineStep(row, kernel, signature, addresses, sources, access, outside, rereads, names)
        self._launched(step, plan)
        return step

    def _known_to_memory(self, touched: _Touched, addresses: Sequence[int]) -> bool:
        address = addresses[touched.tensor]
        return self.memory.has(address + touched.start, address + touched.stop)

    def _plan(self, row: Row, signature: Signature) -> _Plan:
        key = (signature.id, row.before, row.after)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _plan_of(row, signature)
        return plan

    def _birth(self, storage: int, touched: Birth) -> Birth:
        start = self._address(storage)
        stop = start + (self._storages[storage].nbytes if storage in self._storages else 0)
        names = (name for address, name in self._started if start <= address < stop)
        name = next(names, None)
        return touched if name is None else Birth("start", name, "", 0, 0)

    def _address(self, storage: int) -> int:
        known = self._addresses.get(storage)
        return storage + 1 << _UNKNOWN if known is None else known

    def _sources(self, touched: _Touched, address: int, row: Row, kernel: Kernel) -> Sources:
        start, stop = address + touched.start, address + touched.stop
        sources = self.memory.sources(start, stop, touched.meta)
        if None in sources:  # the first read of memory without a recorded writer
            left = Left(start, touched.meta, row.bits(touched.before, touched.before + 1))
            self.memory.fill(start, stop, Write(
                "seen", row.line.index, touched.position, kernel.name, touched.name, start, touched.meta,
                left, row.line.stream,
            ))  # fmt: skip
        writer = row.line.writers.get(touched.position)
        named = writer is not None and not self._operators.signatures
        return _named(sources, str(writer), touched, start) if named else sources

    def _is_on_top(self, reread: Reread, sources: Mapping[int, Sources]) -> bool:
        # a later write into the view that was read once more says nothing about the part that a launch reads
        for one in sources.get(reread.position, ()):
            if one is not None and (one.number, one.position) == (reread.writer, reread.argument):
                left = one.left
                lie = self.memory.sources(*_extent(left), left.view)
                return all(other is not None and other.order <= one.order for other in lie)
        return False

    # ---- writes

    def _launched(self, step: TimelineStep, plan: _Plan) -> None:
        for touched in plan.writes:
            if touched.tensor < len(step.addresses):
                self._wrote(step, touched, step.addresses[touched.tensor])
        for one in step.out_of_bounds:
            if one.access == "store":
                region = _bytes(one.stop - one.start)
                left = Left(one.start, region, "")
                self._writes += 1
                self.memory.write(one.start, one.stop, Write(
                    "launch", step.index, -1, step.kernel.name, one.argument, one.start, region, left,
                    step.row.line.stream, whole=False, out_of_bounds=True, order=self._writes,
                ))  # fmt: skip

    def _wrote(self, step: TimelineStep, touched: _Touched, address: int) -> None:
        row, access, position = step.row, step.access, touched.position
        start, stop = address + touched.start, address + touched.stop
        after = row.bits(touched.after, touched.after + 1)
        changed = not after or row.bits(touched.before, touched.before + 1) != after
        whole = access is None or position not in access.partly
        self._writes += 1
        write = Write(
            "launch", row.line.index, position, step.kernel.name, touched.name, start, touched.meta,
            Left(start, touched.meta, after), row.line.stream, whole, changed, False, self._writes,
        )  # fmt: skip
        ranges = access.written_ranges.get(position) if access else None
        if not ranges:
            self.memory.write(start, stop, write)
            return
        for first, last in zip(ranges[::2], ranges[1::2], strict=True):
            part = write._replace(address=start + first, region=_bytes(last - first), whole=True)
            self.memory.write(start + first, start + last, part)

    def _apply(self, call: OperatorCall) -> None:
        signature = self._operators.signatures.get(call.signature)
        if signature is None:
            return
        addresses = [self._address(number) for number in call.storages]
        inputs = tuple(
            Input(
                span(address, meta)[0],
                _followed(self.memory.sources(*span(address, meta), meta)),
                Placed(storage, meta),
            )
            for address, storage, meta in zip(addresses, call.storages, signature.reads, strict=False)
        )
        digests = self._operators.digests(call.index)
        before = self._operators.counted(call)
        depth = 1 + max((one.depth for entry in inputs for one in entry.sources if one), default=0)
        for position, storage in enumerate(call.storages):
            if storage not in self._births:
                touched = Birth("operator", signature.name, signature.arguments, before, position)
                self._births[storage] = self._birth(storage, touched)
        results = list(zip(addresses[len(signature.reads) :], signature.writes, strict=False))
        for position, (address, meta) in enumerate(results):
            start, stop = span(address, meta)
            bits = digests.after[position].bits if digests and position < len(digests.after) else ""
            kind: WriteKind = "allocation" if signature.allocates else "operator"
            self._writes += 1
            self.memory.write(start, stop, Write(
                kind, call.index, position, signature.name, signature.arguments, start, meta,
                Left(start, meta, bits), reads=inputs, depth=depth, order=self._writes, call=before,
            ))  # fmt: skip


class _Operators:
    # the operators of one process, in order

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self._totals: Counter[int] | None = None  # by signature; read when it is asked for
        self.signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._calls = run.view(process, OperatorCall, OperatorCall)
        self._waiting = next(self._calls, None)
        recorded = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in recorded}
        self._called: dict[tuple[str, str], array[int]] = {}

    def before(self, launch: int | None) -> Iterator[OperatorCall]:
        while self._waiting is not None and (launch is None or self._waiting.launch <= launch):
            call, self._waiting = self._waiting, next(self._calls, None)
            yield call

    def name(self, call: OperatorCall) -> tuple[str, str]:
        signature = self.signatures.get(call.signature)
        return (signature.name, signature.arguments) if signature else ("", "")

    def counted(self, call: OperatorCall) -> int:
        # how often it was called like this before
        signature = self.signatures[call.signature]
        calls = self._called.setdefault((signature.name, signature.arguments), array("q"))
        calls.append(call.launch)
        return len(calls) - 1

    def count(self, name: str, arguments: str, launch: int) -> int:
        return bisect_right(self._called.get((name, arguments), ()), launch)

    def total(self, name: str, arguments: str) -> int:
        if self._totals is None:
            calls = self._run.view(self._process, OperatorCall, OperatorCall)
            self._totals = Counter(call.signature for call in calls)
        alike = (one.id for one in self.signatures.values() if (one.name, one.arguments) == (name, arguments))
        return sum(self._totals[number] for number in alike)

    def digests(self, call: int) -> OperatorDigests | None:
        return self._digests.get(call)


class _Lines:
    # records that only some launches have

    def __init__(self, run: Run, process: str) -> None:
        accesses = run.view(process, Access, Access)
        self._access: Callable[[int], Access | None] = in_step(accesses, _launch_of)
        self._outside = _grouped(run.view(process, OutOfBounds, OutOfBounds))
        self._rereads = _grouped(run.view(process, Reread, Reread))

    def of(self, launch: int) -> tuple[Access | None, tuple[OutOfBounds, ...], tuple[Reread, ...]]:
        return self._access(launch), self._outside(launch), self._rereads(launch)


L = TypeVar("L", OutOfBounds, Reread)


def _launch_of(access: Access | None) -> int:
    assert access is not None
    return access.launch


def _grouped(lines: Iterator[L]) -> Callable[[int], tuple[L, ...]]:
    # asked for each launch in order, it gives all lines of that launch
    waiting = next(lines, None)

    def of(launch: int) -> tuple[L, ...]:
        nonlocal waiting
        launches = []
        while waiting is not None and waiting.launch <= launch:
            if waiting.launch == launch:
                launches.append(waiting)
            waiting = next(lines, None)
        return tuple(launches)

    return of


def tensors_of(signature: Signature, addresses: Sequence[int]) -> Iterator[tuple[int, Argument, int]]:
    """The tensor arguments of a launch: position, argument, address of the storage."""
    tensors = ((n, arg) for n, arg in enumerate(signature.args) if arg.tensor is not None)
    return ((n, arg, address) for (n, arg), address in zip(tensors, addresses, strict=False))


def _storages_of(signature: Signature, storages: Sequence[int]) -> Iterator[tuple[int, TensorMeta, int]]:
    tensors = ((n, arg.tensor) for n, arg in enumerate(signature.args) if arg.tensor is not None)
    return ((n, meta, storage) for (n, meta), storage in zip(tensors, storages, strict=False))


def _extent(left: Left) -> tuple[int, int]:
    start, stop = extent(left.view)
    return left.address, left.address + stop - start


def _bytes(count: int) -> TensorMeta:
    return TensorMeta((count,), (1,), "uint8", "")


def _followed(sources: Sources) -> Sources:
    # what an operator read; of a long chain of operators only the last DEEP are kept
    return tuple([_cut_off(one) if one is not None and one.depth >= DEEP else one for one in sources])


def _cut_off(write: Write) -> Write:
    return write._replace(reads=(), depth=0)


def _named(sources: Sources, operator: str, touched: _Touched, start: int) -> Sources:
    # a run without the calls of operators says which operator wrote an argument last
    top = sources[0] if sources else None
    if top is not None and top.kind == "operator":
        return sources
    return (Write("operator", -1, 0, operator, "", start, touched.meta, Left(start, touched.meta, "")),)


class _Touched(NamedTuple):
    # an argument that a launch reads or writes
    position: int
    tensor: int  # its number among the tensors
    name: str
    start: int  # bytes from the start of the storage
    stop: int
    meta: TensorMeta
    before: int  # which of the launch's digests; -1: none was taken
    after: int


class _Plan(NamedTuple):
    # what launches of one signature touch
    reads: tuple[_Touched, ...]
    writes: tuple[_Touched, ...]


def _plan_of(row: Row, signature: Signature) -> _Plan:
    before = {position: n for n, position in enumerate(row.before)}
    after = {position: n for n, position in enumerate(row.after, len(row.before))}
    reads, writes, tensors = [], [], 0
    for position, arg in enumerate(signature.args):
        if arg.tensor is None:
            continue
        start, stop = extent(arg.tensor)
        digests = before.get(position, -1), after.get(position, -1)
        one = _Touched(position, tensors, arg.name, start, stop, arg.tensor, *digests)
        tensors += 1
        if arg.reads:
            reads.append(one)
        if arg.writes:
            writes.append(one)
    return _Plan(tuple(reads), tuple(writes))
