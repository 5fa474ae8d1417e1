"""Compares the operators outside of Triton whose results no launch reads, call by call.

What a launch reads is compared at that launch, and leads back to the operator that wrote it. What is left is
a loss, the last step of an optimizer, and all that a program computes after its last launch. A case needs no
such comparison: its results are recorded. Not covered are collectives, which `tracing ranks` compares.

Two calls are a pair if thread, name and layouts are equal, and if as many calls like them came before. Lines
do not count: a program may have been edited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from tracing.analyze.compare.divergence_kinds import Cause, Host, OperatorCause
from tracing.analyze.runs.outcomes import ending
from tracing.analyze.runs.program_operators import ASYNCHRONOUS, is_check, is_of_program
from tracing.analyze.runs.results import ResultDiffers, value_text
from tracing.model import (
    CallSite,
    OperatorCall,
    OperatorDigests,
    OperatorSignature,
    TensorMeta,
    TensorValue,
)
from tracing.store import Run
from tracing.views import extent, relation, same_digest

_NOT_WAITED_FOR = "non_blocking=True"
_DEEP = 64  # operators in a row that are followed back

Bits: TypeAlias = Literal["unknown", "equal", "other inputs", "other results"]
What: TypeAlias = Literal["arguments", "results", "random"]


@dataclass(frozen=True, slots=True)
class UnreadOperators:
    """The answer for one process of each run."""

    difference: tuple[ResultDiffers, Cause] | None = None  # the first
    doubt: str = ""  # the first call that reads and writes other bits, whose origin was not recorded
    left_out: tuple[str, ...] = ()  # what was not compared, and the option that records it


class _Kind(NamedTuple):
    # what two calls of a pair have in common; where their tensors begin in a storage does not matter
    name: str
    reads: tuple[TensorMeta, ...]
    writes: tuple[TensorMeta, ...]
    thread: int


class _Called(NamedTuple):
    call: OperatorCall
    signature: OperatorSignature
    site: CallSite | None

    @property
    def arguments(self) -> str:
        return self.signature.arguments_of(self.call)


def _overlapping(writer: _Called, reader: _Called, position: int) -> Iterator[int]:
    # the results of a call that hold bytes of an input of another call
    storage, meta = reader.call.storages[position], reader.signature.reads[position]
    written = writer.call.storages[len(writer.signature.reads) :]
    for number, (there, result) in enumerate(zip(written, writer.signature.writes, strict=False)):
        distance = extent(meta)[0] - extent(result)[0]
        if there == storage and relation(meta, result, distance) != "disjoint":
            yield number


def _without_offsets(metas: Sequence[TensorMeta]) -> tuple[TensorMeta, ...]:
    return tuple(replace(one, offset=0) for one in metas)


_Write: TypeAlias = tuple[_Kind, _Called]


class _Calls:
    # the calls of one process that compute

    def __init__(self, run: Run, process: str) -> None:
        self._run, self._process = run, process
        self._signatures = {one.id: one for one in run.view(process, OperatorSignature, OperatorSignature)}
        self._sites = run.sites(process)
        digests = run.view(process, OperatorDigests, OperatorDigests)
        self._digests = {one.operator: one for one in digests}
        self.counts = Counter(kind for kind, _ in self.called())

    def called(self) -> Iterator[tuple[_Kind, _Called]]:
        kinds: dict[tuple[int, int], _Kind] = {}
        for call in self._run.view(self._process, OperatorCall, OperatorCall):
            signature = self._signatures.get(call.signature)
            if signature is None or signature.allocates or not signature.writes:
                continue
            if signature.name.startswith(ASYNCHRONOUS):
                continue
            key = call.signature, call.thread
            if key not in kinds:
                reads, writes = map(_without_offsets, (signature.reads, signature.writes))
                kinds[key] = _Kind(signature.name, reads, writes, call.thread)
            yield kinds[key], _Called(call, signature, self._sites.get(call.site))

    def last_writer(self, reader: _Called, position: int) -> _Write | None:
        """The last call before another one that wrote what it reads there; None: no operator, or unknown."""
        last = None
        for kind, one in self.called():
            if one.call.index >= reader.call.index:
                break
            if next(_overlapping(one, reader, position), None) is not None:
                last = kind, one
        return last if last is None or self._left(last[1], reader, position) else None

    def _left(self, writer: _Called, reader: _Called, position: int) -> bool:
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

    def digests(self, one: _Called) -> OperatorDigests | None:
        return self._digests.get(one.call.index)


def unread_operators(runs: tuple[Run, Run], rank: int, processes: tuple[str, str]) -> UnreadOperators:
    """Compare the operators of one process of each run, of which no launch differs.

    Time: some 5 µs a call. Memory: some 500 bytes for each call with digests.
    """
    a, b = (_Calls(run, process) for run, process in zip(runs, processes, strict=True))
    doubt, undigested, made = "", None, None
    for one, other in _pairs(a, b, {kind for kind, count in a.counts.items() if count == b.counts[kind]}):
        bits = _compared(a.digests(one), b.digests(other))
        arguments = one.arguments, other.arguments
        if bits == "unknown":
            undigested = one
        if bits == "other inputs":
            if not doubt and (only := _writer((a, b), (one, other))) is not None:
                return UnreadOperators((_differing((one, other), (a, b), rank), only))
            doubt = doubt or _other_values((a, b), (one, other))
        elif bits != "equal" and arguments[0] != arguments[1]:
            texts = f"({arguments[0]})", f"({arguments[1]})"
            return UnreadOperators(_difference(rank, (one, other), texts, "arguments"))
        elif bits == "other results" and _NOT_WAITED_FOR in arguments[0]:
            doubt = (
                doubt or f"{_named(one)} copies while the program continues: its digest may be of other bits"
            )
        elif bits == "other results":
            texts = _text(one, a.digests(one)), _text(other, b.digests(other))
            if one.signature.random:
                return UnreadOperators(_difference(rank, (one, other), texts, "random"))
            if one.signature.reads:
                return UnreadOperators(_difference(rank, (one, other), texts, "results"))
            if made is None:
                cause = Host("ab", None, made=True, sites=(one.site, other.site))
                made = ResultDiffers(f"tensor of {_named(one)}", *texts, rank), cause
    if made is not None:  # of numbers of the program, as a measured time
        return UnreadOperators(made)
    left_out, called = [], sum(1 for _ in runs[0].rows(processes[0]))
    whole = not any(ending(run, rank) for run in runs)  # else a run may lack the last calls of its program
    if whole and (latest := _unpaired(a, b)) is not None:
        by_program, unpaired = latest
        which = f"operators that the runs call unequally often, as {_named(unpaired)}"
        # no launch reads what it computes, or perhaps none; calls of torch itself, as in a first run that
        # compiles, are no doubt
        if unpaired.call.launch >= called or by_program:
            doubt = doubt or which
        else:
            left_out.append(which)
    if undigested is not None and undigested.call.launch >= called:
        what = f"what operators compute after the last launch, as {_named(undigested)}"
        left_out.append(f"{what}; `--operators digests` records it")
    return UnreadOperators(None, doubt, tuple(left_out))


def _pairs(a: _Calls, b: _Calls, kinds: Collection[_Kind]) -> Iterator[tuple[_Called, _Called]]:
    # kinds -- those that both processes call equally often
    later, waiting = _numbered(b, kinds), dict[tuple[_Kind, int], _Called]()
    for wanted, one in _numbered(a, kinds):
        while wanted not in waiting:
            there, other = next(later)
            waiting[there] = other
        yield one, waiting.pop(wanted)


def _numbered(calls: _Calls, kinds: Collection[_Kind]) -> Iterator[tuple[tuple[_Kind, int], _Called]]:
    counts = Counter[_Kind]()
    for kind, one in calls.called():
        if kind in kinds:
            yield (kind, counts[kind]), one
            counts[kind] += 1


def _compared(a: OperatorDigests | None, b: OperatorDigests | None) -> Bits:
    # only the first result: others may be left unwritten, as the seeds of an attention without dropout
    if a is None or b is None or not (a.after and b.after):
        return "unknown"
    before = [(one.bits, other.bits) for one, other in zip(a.before, b.before, strict=False)]
    after = a.after[0].bits, b.after[0].bits
    if not all(all(pair) for pair in (*before, after)):
        return "unknown"
    if after[0] == after[1]:
        return "equal"
    return "other inputs" if any(one != other for one, other in before) else "other results"


def _difference(
    rank: int, pair: tuple[_Called, _Called], texts: tuple[str, str], what: What
) -> tuple[ResultDiffers, OperatorCause]:
    a, b = pair
    cause = OperatorCause(
        (a.signature.name, b.signature.name),
        (a.arguments, b.arguments),
        "ab",
        proven=True,
        not_deterministic=what == "results",
        random=what == "random",
        calls=(a.call.index, b.call.index),
        sites=(a.site, b.site),
    )
    return ResultDiffers(f"output of operator {_numbers(pair)}", *texts, rank), cause


def _numbers(pair: tuple[_Called, _Called]) -> str:
    a, b = (f"#{one.call.index}" for one in pair)
    return a if a == b else f"{a} | {b}"


def _text(one: _Called, digests: OperatorDigests | None) -> str:
    assert digests is not None
    return value_text(TensorValue(one.signature.writes[0], digests.after[0]))


def _differing(pair: tuple[_Called, _Called], of: tuple[_Calls, _Calls], rank: int) -> ResultDiffers:
    a, b = (_text(one, calls.digests(one)) for one, calls in zip(pair, of, strict=True))
    return ResultDiffers(f"output of operator {_numbers(pair)}", a, b, rank)


def _writer(of: tuple[_Calls, _Calls], pair: tuple[_Called, _Called]) -> OperatorCause | None:
    # who wrote what a pair reads: an operator that one run calls more often, or another one in each run
    for _ in range(_DEEP):
        last = _last_writers(of, pair)
        a, b = last
        if a is None or b is None or a[0].name != b[0].name or a[0] == b[0]:
            break
        if a[1].arguments != b[1].arguments:
            return _cause(a[1], b[1])
        pair = a[1], b[1]  # its layouts follow from those of its inputs
    else:
        return None
    only = [
        one[1] if one is not None and _is_only_in(one[0], mine, other) else None
        for one, mine, other in zip(last, of, reversed(of), strict=True)
    ]
    if only[0] is not None or only[1] is not None:
        return _cause(only[0], only[1])
    if a is None or b is None or a[0].name == b[0].name:
        return None
    # else the runs may make these calls in another order
    unequal = any(of[0].counts[kind] != of[1].counts[kind] for kind, _ in (a, b))
    return _cause(a[1], b[1]) if unequal else None


def _other_values(of: tuple[_Calls, _Calls], pair: tuple[_Called, _Called]) -> str:
    # of a pair whose inputs differ, and no call is known to be the cause: the facts
    a, b = _last_writers(of, pair)
    if a is None or b is None:
        return f"{_named(pair[0])} reads other values, and what wrote them is not known"
    return f"{_named(pair[0])} reads other values: {_named(a[1])} wrote them in a, {_named(b[1])} in b"


def _last_writers(
    of: tuple[_Calls, _Calls], pair: tuple[_Called, _Called]
) -> tuple[_Write | None, _Write | None]:
    # of the first input that differs
    before = [calls.digests(one) for calls, one in zip(of, pair, strict=True)]
    if before[0] is None or before[1] is None:
        return None, None
    bits = zip(before[0].before, before[1].before, strict=False)
    position = next((number for number, (one, other) in enumerate(bits) if one.bits != other.bits), None)
    if position is None:
        return None, None
    a, b = (calls.last_writer(one, position) for calls, one in zip(of, pair, strict=True))
    return a, b


def _is_only_in(kind: _Kind, mine: _Calls, other: _Calls) -> bool:
    # not if the other run calls it on other layouts
    return not other.counts[kind] and mine.called_by_name(kind.name) > other.called_by_name(kind.name)


def _cause(a: _Called | None, b: _Called | None) -> OperatorCause:
    return OperatorCause(
        (a.signature.name if a else "", b.signature.name if b else ""),
        (a.arguments if a else "", b.arguments if b else ""),
        "ab" if a and b else "a" if a else "b",
        proven=True,
        sites=(a.site if a else None, b.site if b else None),
    )


def _unpaired(a: _Calls, b: _Calls) -> tuple[bool, _Called] | None:
    # of the operators that the runs call unequally often, the latest call, and True if a line of the program
    # makes it: such calls come before those of torch itself
    unequal = {kind for kind in (*a.counts, *b.counts) if a.counts[kind] != b.counts[kind]}
    them = (
        (is_of_program(one.site) and not is_check(one.signature.name, one.signature.writes), one)
        for calls in (a, b)
        for kind, one in calls.called()
        if kind in unequal
    )
    return max(them, key=lambda one: (one[0], one[1].call.launch), default=None)


def _named(one: _Called) -> str:
    name = f"operator #{one.call.index} {one.signature.name}"
    return f"{name}, called at {one.site}" if one.site else name
