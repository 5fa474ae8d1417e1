"""One process of one run in the order in which it happened: launches, and what memory held before each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from tracing.analyze.compare.memory import Left, Memory, Sources, Write, WriteKind, span
from tracing.analyze.compare.signature_pair import Signatures, signature_of
from tracing.analyze.views import extent
from tracing.digests import Row
from tracing.model import (
    Access,
    Argument,
    Kernel,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    OutOfBounds,
    Reread,
    Signature,
    Storage,
    TensorMeta,
)
from tracing.store import Run, rank_of
from tracing.store.joins import in_step

DEEP = 64  # operators in a row through which a value is followed back
_UNKNOWN = 44  # bits: storages of a run without addresses lie this far apart

Covers: TypeAlias = Callable[[int, str, str, int], bool]
Queue: TypeAlias = tuple[int, int]  # stream and thread: what is launched there runs in order


@dataclass(slots=True)
class Step:
    """A launch, and where what it reads came from."""

    row: Row
    kernel: Kernel
    signature: Signature
    addresses: Sequence[int]  # of the storages of its tensors
    sources: Mapping[int, Sources]  # by position of the argument that it reads
    access: Access | None = None  # None: only digests are known
    out_of_bounds: tuple[OutOfBounds, ...] = ()
    rereads: tuple[Reread, ...] = ()

    @property
    def index(self) -> int:
        return self.row.line.index

    @property
    def queue(self) -> Queue:
        return self.row.line.stream, self.row.line.thread

    def address(self, position: int) -> int:
        """The address of the storage of an argument."""
        return next(address for n, _, address in tensors_of(self.signature, self.addresses) if n == position)

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
        self.memory = Memory()
        self._addresses = {one.id: one.address for one in run.view(process, Storage, Storage)}
        self._writes = 0
        self._operators = _Operators(run, process)
        self._lines = _Lines(run, process)

    def pass_over(self, launches: int) -> int:
        """Note who wrote what in the first launches; the index of the one that follows."""
        index = -1
        for row in self._run.rows(self._process) if launches else ():
            launches -= 1
            self._advance(row, look=False)
            index = row.line.index
            if not launches:
                break
        return index + 1

    def steps(self, launches: int, batches: int, covers: Covers | None = None) -> Iterator[Step]:
        """The launches that follow the first ones, and the lines of their digests.

        covers -- asked for each with its index, kernel, phase and rank: one that it refuses is left out
        """
        rank = rank_of(self._process)
        for row in self._run.rows(self._process, launches, batches):
            kernel, signature = signature_of(row, self._known, self._run)
            if covers is None or covers(row.line.index, kernel.name, signature.phase, rank):
                yield self._advance(row, look=True)
        self.finish()

    def finish(self) -> None:
        """Take account of the operators that followed the last launch."""
        for call in self._operators.before(None):
            self._apply(call)

    def digests_of(self, operator: Write) -> OperatorDigests | None:
        """The digests of an operator's call, if they were taken."""
        return self._operators.digests(operator.number)

    def operators_since(self, index: int) -> list[tuple[OperatorCall, OperatorSignature]]:
        """The operators that were called when `index` launches had been made, or later."""
        return [(one, self._operators.signatures[one.signature]) for one in self._operators.all(index)]

    def _advance(self, row: Row, *, look: bool) -> Step:
        for call in self._operators.before(row.line.index):
            self._apply(call)
        kernel, signature = signature_of(row, self._known, self._run)
        addresses = [self._address(number) for number in row.line.storages]
        access, outside, rereads = self._lines.of(row.line.index)
        sources = self._sources(signature, addresses, row) if look else {}
        self._saw(kernel, signature, addresses, row)
        rereads = tuple(one for one in rereads if look and self._is_on_top(one, sources))
        step = Step(row, kernel, signature, addresses, sources, access, outside, rereads)
        self._launched(step)
        return step

    def _address(self, storage: int) -> int:
        known = self._addresses.get(storage)
        return storage + 1 << _UNKNOWN if known is None else known

    def _sources(self, signature: Signature, addresses: Sequence[int], row: Row) -> dict[int, Sources]:
        found = {}
        for position, arg, address in tensors_of(signature, addresses):
            if arg.tensor is not None and arg.reads:
                sources = self.memory.sources(*span(address, arg.tensor), arg.tensor)
                found[position] = _named(sources, row.line.writers.get(position), arg, address)
        return found

    def _is_on_top(self, reread: Reread, sources: Mapping[int, Sources]) -> bool:
        # a later write into the view that was read once more says nothing about the part that a launch reads
        for one in sources.get(reread.position, ()):
            if one is not None and (one.number, one.position) == (reread.writer, reread.argument):
                left = one.left
                lie = self.memory.sources(*_extent(left), left.view)
                return all(other is not None and other.order <= one.order for other in lie)
        return False

    def _saw(self, kernel: Kernel, signature: Signature, addresses: Sequence[int], row: Row) -> None:
        for position, arg, address in tensors_of(signature, addresses):
            if arg.tensor is not None and arg.reads:
                start, stop = span(address, arg.tensor)
                left = Left(start, arg.tensor, row.digest(position, "before"))
                self.memory.fill(start, stop, Write(
                    "seen", row.line.index, position, kernel.name, arg.name, start, arg.tensor, left,
                    row.line.stream,
                ))  # fmt: skip

    # ---- writes

    def _write(self, start: int, stop: int, write: Write) -> None:
        self._writes += 1
        self.memory.write(start, stop, write._replace(order=self._writes))

    def _launched(self, step: Step) -> None:
        for position, arg, address in tensors_of(step.signature, step.addresses):
            if arg.tensor is not None and arg.writes:
                self._wrote(step, position, arg, address)
        for one in step.out_of_bounds:
            if one.access == "store":
                region = _bytes(one.stop - one.start)
                left = Left(one.start, region, "")
                self._write(one.start, one.stop, Write(
                    "launch", step.index, -1, step.kernel.name, one.argument, one.start, region, left,
                    step.row.line.stream, whole=False, out_of_bounds=True,
                ))  # fmt: skip

    def _wrote(self, step: Step, position: int, arg: Argument, address: int) -> None:
        assert arg.tensor is not None
        start, stop = span(address, arg.tensor)
        before, after = step.row.digest(position, "before"), step.row.digest(position, "after")
        changed = not (before and before == after)
        whole = step.access is None or position not in step.access.partly
        write = Write(
            "launch", step.index, position, step.kernel.name, arg.name, start, arg.tensor,
            Left(start, arg.tensor, after), step.row.line.stream, whole, changed,
        )  # fmt: skip
        ranges = step.access.written_ranges.get(position) if step.access else None
        if not ranges:
            self._write(start, stop, write)
            return
        for first, last in zip(ranges[::2], ranges[1::2], strict=True):
            part = write._replace(address=start + first, region=_bytes(last - first), whole=True)
            self._write(start + first, start + last, part)

    def _apply(self, call: OperatorCall) -> None:
        signature = self._operators.signatures.get(call.signature)
        if signature is None:
            return
        addresses = [self._address(number) for number in call.storages]
        inputs = tuple(
            _followed(self.memory.sources(*span(address, meta), meta))
            for address, meta in zip(addresses, signature.reads, strict=False)
        )
        digests = self._operators.digests(call.index)
        depth = 1 + max((one.depth for found in inputs for one in found if one), default=0)
        results = list(zip(addresses[len(signature.reads) :], signature.writes, strict=False))
        for position, (address, meta) in enumerate(results):
            start, stop = span(address, meta)
            bits = digests.after[position].bits if digests and position < len(digests.after) else ""
            kind: WriteKind = "allocation" if signature.allocates else "operator"
            self._write(start, stop, Write(
                kind, call.index, position, signature.name, signature.arguments, start, meta,
                Left(start, meta, bits), reads=inputs, depth=depth,
            ))  # fmt: skip


class _Operators:
    # the operators of one process, in order

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self.signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._calls = run.view(process, OperatorCall, OperatorCall)
        self._waiting = next(self._calls, None)
        found = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in found}

    def before(self, launch: int | None) -> Iterator[OperatorCall]:
        while self._waiting is not None and (launch is None or self._waiting.launch <= launch):
            call, self._waiting = self._waiting, next(self._calls, None)
            yield call

    def all(self, launch: int) -> Iterator[OperatorCall]:
        calls = self._run.view(self._process, OperatorCall, OperatorCall)
        return (one for one in calls if one.launch >= launch and one.signature in self.signatures)

    def digests(self, call: int) -> OperatorDigests | None:
        return self._digests.get(call)


class _Lines:
    # what is written of some launches only

    def __init__(self, run: Run, process: str) -> None:
        self._access = in_step(run.view(process, Access, Access))
        self._outside = _grouped(run.view(process, OutOfBounds, OutOfBounds))
        self._rereads = _grouped(run.view(process, Reread, Reread))

    def of(self, launch: int) -> tuple[Access | None, tuple[OutOfBounds, ...], tuple[Reread, ...]]:
        return self._access(launch), self._outside(launch), self._rereads(launch)


L = TypeVar("L", OutOfBounds, Reread)


def _grouped(lines: Iterator[L]) -> Callable[[int], tuple[L, ...]]:
    # asked for each launch in order, it gives all lines of that launch
    waiting = next(lines, None)

    def of(launch: int) -> tuple[L, ...]:
        nonlocal waiting
        found = []
        while waiting is not None and waiting.launch <= launch:
            if waiting.launch == launch:
                found.append(waiting)
            waiting = next(lines, None)
        return tuple(found)

    return of


def tensors_of(signature: Signature, addresses: Sequence[int]) -> Iterator[tuple[int, Argument, int]]:
    """The tensor arguments of a launch: position, argument, address of the storage."""
    tensors = ((n, arg) for n, arg in enumerate(signature.args) if arg.tensor is not None)
    return ((n, arg, address) for (n, arg), address in zip(tensors, addresses, strict=False))


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


def _named(sources: Sources, operator: str | None, arg: Argument, address: int) -> Sources:
    # a run without the calls of operators says which operator wrote an argument last
    top = sources[0] if sources else None
    if operator is None or arg.tensor is None or (top is not None and top.kind == "operator"):
        return sources
    start, _ = span(address, arg.tensor)
    return (Write("operator", -1, 0, operator, "", start, arg.tensor, Left(start, arg.tensor, "")),)
