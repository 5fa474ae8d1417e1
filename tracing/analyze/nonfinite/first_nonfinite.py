"""Find the first launch or operator that produces a NaN or an inf from finite inputs, and its readers.

Launches and operators are taken in the order in which they were made. The counts of NaN and inf in their
digests decide; a tensor without a digest is reported with the option that would record it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor, data_events
from tracing.analyze.runs.recorded_steps import not_covered_steps
from tracing.model import KernelLaunch, Operator
from tracing.store import Run
from tracing.store.graph_file import PythonLine

# makes:  a launch or operator that reads no such value computed it
# passes: it came to the launch or operator as a number, or as data of Python
# reads:  nothing that was recorded wrote it
Verb: TypeAlias = Literal["makes", "passes", "reads"]

_DIGESTS = "--operators digests"


@dataclass(frozen=True, slots=True)
class NonFiniteOrigin:
    """The origin of the first NaN or inf of a run."""

    event: DataEvent
    verb: Verb
    tensors: tuple[NonFiniteTensor, ...]  # written by the event; if it reads the values, read by it
    chain: tuple[DataEvent, ...]  # those that carry it on to the last one, each from the one before it
    carriers: int = 0  # how many carry it on in all
    computes: tuple[PythonLine, ...] = ()  # lines that the launch computes

    @property
    def made(self) -> bool:
        """True if the event computed the values."""
        return self.verb == "makes"


class _Undigested(NamedTuple):
    # what an operator without digests wrote last
    operator: str
    elements: int


@dataclass(slots=True)
class NonFiniteAnswer:
    """The answer to `tracing nan`; `origin` None and no `unknown`: every value is finite."""

    kind: Kind = "any"  # "nan": inf counts as finite; "inf": NaN counts as finite
    origin: NonFiniteOrigin | None = None
    launches: int = 0
    operators: int = 0
    unknown: list[str] = field(default_factory=list)  # launches and operators without digests
    record: list[str] = field(default_factory=list)  # options of `tracing run` that would show it
    missing: list[str] = field(default_factory=list)  # steps that the run lacks

    @property
    def status(self) -> int:
        """The exit status: 1 if there is an origin, 2 if digests are missing, 0 if every value is finite."""
        if self.origin is not None:
            return 1
        return 2 if self.unknown else 0


def first_nonfinite(run: Run, kind: Kind = "any") -> NonFiniteAnswer:
    """Search a run; of a job, the lowest rank that has one.

    kind -- "nan": inf counts as finite; "inf": NaN counts as finite

    Cost: a pass over the launches and operators, some 10 µs each.
    """
    answer = NonFiniteAnswer(kind)
    for process in run.processes():
        origin = _of_process(run, process, kind, answer)
        if origin is not None:
            answer.origin = origin
            break
    _unknown(run, answer)
    return answer


def _of_process(run: Run, process: str, kind: Kind, answer: NonFiniteAnswer) -> NonFiniteOrigin | None:
    origin: DataEvent | None = None
    verb: Verb = "makes"
    last = 0
    carried: dict[int, int] = {}  # by storage: the last event of the chain that wrote it
    carriers: list[tuple[DataEvent, int]] = []  # with the number of the one before it in its chain
    undigested: dict[int, _Undigested] = {}  # by storage
    for event in data_events(run, process):
        answer.launches += isinstance(event.source, KernelLaunch)
        answer.operators += isinstance(event.source, Operator)
        written = {one.storage for one in event.writes if one.storage is not None}
        if not event.known and isinstance(event.source, Operator):
            undigested |= {
                one.storage: _Undigested(event.name, one.elements)
                for one in event.writes
                if one.storage is not None
            }
        read = [one for one in event.reads if one.bad(kind)]
        wrote = [one for one in event.writes if one.bad(kind)]
        parents = [carried[one.storage] for one in event.reads if one.storage in carried]
        if origin is None and (read or wrote):
            if read and any(one.storage in undigested for one in read):
                _blame(read, undigested, event, answer)
                return None
            origin, verb = event, _verb(event, read, wrote, kind)
            carriers.append((event, -1))
            carried |= dict.fromkeys((one.storage for one in (wrote or read) if one.storage is not None), 0)
        elif origin is not None and parents and (wrote or not event.known):
            carriers.append((event, max(parents)))
            carried |= dict.fromkeys(written, len(carriers) - 1)
            last = len(carriers) - 1 if wrote else last
        else:
            for storage in written:
                carried.pop(storage, None)
        if event.known:
            _clear(undigested, event)
    if origin is None:
        if undigested and run.info.operators == "digests":
            names = ", ".join(sorted({one.operator for one in undigested.values()}))
            answer.unknown.append(f"what {names} wrote has no digest, and nothing read all of it later")
        return None
    tensors = tuple(one for one in (origin.reads if verb == "reads" else origin.writes) if one.bad(kind))
    source = origin.source
    computes = launch_lines(run, origin.rank, source) if isinstance(source, KernelLaunch) else ()
    chain = tuple(_chain(carriers, last))
    return NonFiniteOrigin(origin, verb, tensors, chain, len(carriers) - 1, computes)


def _verb(event: DataEvent, read: list[NonFiniteTensor], wrote: list[NonFiniteTensor], kind: Kind) -> Verb:
    if read:
        return "reads"
    computed_nan = any(one.bad("nan") for one in wrote) and not event.bad_numbers("nan")  # 0 * inf
    if event.from_python or (event.bad_numbers(kind) and not (computed_nan and kind != "inf")):
        return "passes"
    return "makes"


def _clear(undigested: dict[int, _Undigested], event: DataEvent) -> None:
    # what a known event overwrites, or reads completely, is known
    for one in event.writes:
        if one.storage in undigested:
            del undigested[one.storage]
    for one in event.reads:
        if one.storage in undigested and one.elements >= undigested[one.storage].elements:
            del undigested[one.storage]


def _chain(carriers: list[tuple[DataEvent, int]], last: int) -> list[DataEvent]:
    chain: list[DataEvent] = []
    while last > 0:
        event, last = carriers[last]
        chain.append(event)
    return chain[::-1]


def _blame(
    read: list[NonFiniteTensor], undigested: dict[int, _Undigested], event: DataEvent, answer: NonFiniteAnswer
) -> None:
    for one in read:
        if one.storage in undigested:
            answer.unknown.append(
                f"{event.name} (#{event.source.index}) reads one in {one.name}, which "
                f"{undigested[one.storage].operator} wrote: its inputs have no digests"
            )
    answer.record.append(_DIGESTS)


def _unknown(run: Run, answer: NonFiniteAnswer) -> None:
    info = run.info
    if info.digests == "none":
        answer.unknown.append("the launches have no digests")
        answer.record.append("--digests all")
    if answer.operators and info.operators != "digests":
        answer.unknown.append(
            f"{answer.operators} calls of operators outside of Triton have no digests: one of them may have "
            "made a NaN or an inf before"
        )
        answer.record.append(_DIGESTS)
    if info.operators == "none":
        answer.unknown.append("operators outside of Triton were not recorded")
        answer.record.append(_DIGESTS)
    selection = info.selection
    if selection.kernels or selection.phases or selection.launches or selection.ranks:
        answer.unknown.append("only some launches were recorded")
        answer.record.append("all launches")
    answer.missing = [one.what for one in not_covered_steps(run)]
    answer.unknown += answer.missing
    if not run.processes():
        answer.unknown.append("the run has no launches")
    answer.record[:] = dict.fromkeys(answer.record)
