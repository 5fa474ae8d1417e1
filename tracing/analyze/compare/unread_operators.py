"""Compares the operators outside of Triton whose results no launch reads, call by call.

What a launch reads is compared at that launch, and leads back to the operator that wrote it. What is left is
a loss, the last step of an optimizer, and all that a program computes after its last launch. A case needs no
such comparison: its results are recorded. Not covered are collectives, which `tracing ranks` compares.

Two calls are a pair if thread, name and layouts are equal, and if as many calls like them came before. Lines
do not count: a program may have been edited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tracing.analyze.compare.cause_kinds import Cause, Host, OperatorCause, OtherResults
from tracing.analyze.compare.computing_calls import Called, CallKind, CallOfKind, ComputingCalls
from tracing.analyze.runs.outcomes import ending
from tracing.analyze.runs.program_operators import is_check, is_of_program
from tracing.analyze.runs.results import ResultDiffers, value_text
from tracing.model import OperatorDigests, TensorValue
from tracing.store import Run

_NOT_WAITED_FOR = "non_blocking=True"
_DEEP = 64  # operators in a row that are followed back

Bits: TypeAlias = Literal["unknown", "equal", "other inputs", "other results"]
What: TypeAlias = Literal["arguments", "results", "random"]
_Pair: TypeAlias = tuple[Called, Called]  # of run a, of run b
_Sides: TypeAlias = tuple[ComputingCalls, ComputingCalls]


@dataclass(frozen=True, slots=True)
class UnreadOperators:
    """The answer for one process of each run."""

    difference: tuple[ResultDiffers, Cause] | None = None  # the first
    doubt: str = ""  # the first call that reads and writes other bits, whose origin was not recorded
    left_out: tuple[str, ...] = ()  # what was not compared, and the option that records it


def unread_operators(runs: tuple[Run, Run], rank: int, processes: tuple[str, str]) -> UnreadOperators:
    """Compare the operators of one process of each run, of which no launch differs.

    Time: some 5 µs a call. Memory: some 500 bytes for each call with digests.
    """
    a, b = (ComputingCalls(run, process) for run, process in zip(runs, processes, strict=True))
    doubt, undigested, made = "", None, None
    for one, other in _pairs(a, b):
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
            asynchronous = f"{one.title} copies while the program continues: its digest may be of other bits"
            doubt = doubt or asynchronous
        elif bits == "other results":
            texts = _text(one, a.digests(one)), _text(other, b.digests(other))
            if one.signature.random:
                return UnreadOperators(_difference(rank, (one, other), texts, "random"))
            if one.signature.reads:
                return UnreadOperators(_difference(rank, (one, other), texts, "results"))
            if made is None:
                cause = Host("ab", None, made=True, sites=(one.site, other.site))
                made = ResultDiffers(f"tensor of {one.title}", *texts, rank), cause
    if made is not None:  # of numbers of the program, as a measured time
        return UnreadOperators(made)
    launches = sum(1 for _ in runs[0].rows(processes[0]))
    whole = not any(ending(run, rank) for run in runs)  # else a run may lack the last calls of its program
    unequal, left_out = _called_unequally(a, b, launches) if whole else ("", [])
    if undigested is not None and undigested.call.launch >= launches:
        what = f"what operators compute after the last launch, as {undigested.title}"
        left_out.append(f"{what}; `--operators digests` records it")
    return UnreadOperators(None, doubt or unequal, tuple(left_out))


def _called_unequally(a: ComputingCalls, b: ComputingCalls, launches: int) -> tuple[str, list[str]]:
    # operators that the runs call unequally often: a doubt, or else calls that were left out
    # launches -- of run a
    if (latest := _unpaired(a, b)) is None:
        return "", []
    by_program, unpaired = latest
    which = f"operators that the runs call unequally often, as {unpaired.title}"
    # no launch reads what it computes, or perhaps none; calls of torch itself, as in a first run that
    # compiles, are no doubt
    return (which, []) if unpaired.call.launch >= launches or by_program else ("", [which])


def _pairs(a: ComputingCalls, b: ComputingCalls) -> Iterator[_Pair]:
    # calls of a kind that one run calls more often have no partner
    kinds = {kind for kind, count in a.counts.items() if count == b.counts[kind]}
    later, waiting = _numbered(b, kinds), dict[tuple[CallKind, int], Called]()
    for wanted, one in _numbered(a, kinds):
        while wanted not in waiting:
            there, other = next(later)
            waiting[there] = other
        yield one, waiting.pop(wanted)


def _numbered(calls: ComputingCalls, kinds: set[CallKind]) -> Iterator[tuple[tuple[CallKind, int], Called]]:
    counts = Counter[CallKind]()
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
    rank: int, pair: _Pair, texts: tuple[str, str], what: What
) -> tuple[ResultDiffers, OperatorCause]:
    a, b = pair
    calls = a.call.index, b.call.index
    cause = OperatorCause(
        (a.signature.name, b.signature.name),
        (a.arguments, b.arguments),
        "ab",
        proven=True,
        how=OtherResults("random" if what == "random" else "not deterministic", calls),
        sites=(a.site, b.site),
    )
    return ResultDiffers(f"output of operator {_numbers(pair)}", *texts, rank), cause


def _numbers(pair: _Pair) -> str:
    a, b = (f"#{one.call.index}" for one in pair)
    return a if a == b else f"{a} | {b}"


def _text(one: Called, digests: OperatorDigests | None) -> str:
    assert digests is not None
    return value_text(TensorValue(one.signature.writes[0], digests.after[0]))


def _differing(pair: _Pair, of: _Sides, rank: int) -> ResultDiffers:
    a, b = (_text(one, calls.digests(one)) for one, calls in zip(pair, of, strict=True))
    return ResultDiffers(f"output of operator {_numbers(pair)}", a, b, rank)


def _writer(of: _Sides, pair: _Pair) -> OperatorCause | None:
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


def _other_values(of: _Sides, pair: _Pair) -> str:
    # of a pair whose inputs differ, and no call is known to be the cause: the facts
    a, b = _last_writers(of, pair)
    if a is None or b is None:
        return f"{pair[0].title} reads other values, and what wrote them is not known"
    return f"{pair[0].title} reads other values: {a[1].title} wrote them in a, {b[1].title} in b"


def _last_writers(of: _Sides, pair: _Pair) -> tuple[CallOfKind | None, CallOfKind | None]:
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


def _is_only_in(kind: CallKind, mine: ComputingCalls, other: ComputingCalls) -> bool:
    # not if the other run calls it on other layouts
    return not other.counts[kind] and mine.called_by_name(kind.name) > other.called_by_name(kind.name)


def _cause(a: Called | None, b: Called | None) -> OperatorCause:
    return OperatorCause(
        (a.signature.name if a else "", b.signature.name if b else ""),
        (a.arguments if a else "", b.arguments if b else ""),
        "ab" if a and b else "a" if a else "b",
        proven=True,
        sites=(a.site if a else None, b.site if b else None),
    )


def _unpaired(a: ComputingCalls, b: ComputingCalls) -> tuple[bool, Called] | None:
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
