"""Find the first launch or operator that produces a NaN or an inf from finite inputs, and its readers.

Launches and operators are taken in the order in which they were made. The counts of NaN and inf in their
digests decide, and those of the elements that a launch accessed, where they are known; a tensor without a
digest is reported with the option that would record it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal, TypeAlias

from tracing.analyze.graphs.launch_lines import filling_lines, launch_lines
from tracing.analyze.nonfinite.carriers import Carriers
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor, data_events
from tracing.analyze.nonfinite.memory_contents import MemoryContents, OldContents, Undigested
from tracing.analyze.nonfinite.stored_constants import Share, stored_constants
from tracing.analyze.runs.outcomes import cut_off
from tracing.analyze.runs.recorded_steps import RecordedSteps, not_covered_steps
from tracing.model import Access, KernelLaunch
from tracing.model.collectives import is_collective
from tracing.model.library_files import is_library
from tracing.store import Run, rank_of
from tracing.store.cut_files import cut_files
from tracing.store.graph_file import PythonLine

# makes:  a launch or operator that reads no such value computed it
# passes: it came to the launch or operator as a number, or as data of Python, or is a constant of a kernel
# reads:  nothing that was recorded wrote it
# keeps:  it was there before the launch, in elements that the launch did not write
# may make: it fills memory of torch.empty with NaN, as Inductor does, or stores a constant, or is called with
#         such a number: that may be all
Verb: TypeAlias = Literal["makes", "passes", "reads", "keeps", "may make"]

_DIGESTS = "--operators digests"
_SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"  # of torch.amp.GradScaler


@dataclass(frozen=True, slots=True)
class NonFiniteOrigin:
    """The origin of the first NaN or inf of a run."""

    event: DataEvent
    verb: Verb
    tensors: tuple[NonFiniteTensor, ...]  # written by the event; if it reads the values, read by it
    chain: tuple[DataEvent, ...]  # those that carry it on to the last one, each from the one before it
    carriers: int = 0  # how many carry it on, or may, in all
    carriers_known: bool = True  # each of these does
    computes: tuple[PythonLine, ...] = ()  # lines that the launch computes
    fills: tuple[PythonLine, ...] = ()  # lines that allocate memory which it sets in part
    constant: bool = False  # a constant NaN or inf of the kernel's code is stored
    old: OldContents | None = None  # if a launch left it there: that launch
    first: bool = True  # False: a launch before it may have stored one
    unseen: bool = False  # an operator before it, which has no digests, may have made one
    partial: bool = False  # the run lacks launches before it
    cast: tuple[DataEvent, str] | None = None  # what wrote the bytes that it reads, as numbers of that dtype
    unwritten: tuple[str, ...] = ()  # arguments that it reads, and of which nothing wrote any element
    scaler: DataEvent | None = None  # the check of torch.amp.GradScaler that reads the values

    @property
    def made(self) -> bool:
        """True if the event computed the values."""
        return self.verb == "makes"


@dataclass(frozen=True, slots=True)
class UndigestedRead:
    """An event that reads such a value from memory which an operator without digests wrote."""

    event: DataEvent
    tensor: str
    written: Undigested

    def __str__(self) -> str:
        reads = f"{self.event.name} (#{self.event.source.index}) reads one in {self.tensor}"
        return f"{reads}, which {self.written.text} wrote: its inputs have no digests"


@dataclass(slots=True)
class NonFiniteAnswer:
    """The answer to `tracing nan`; `origin` None and no `unknown`: every value is finite."""

    kind: Kind = "any"  # "nan": inf counts as finite; "inf": NaN counts as finite
    origin: NonFiniteOrigin | None = None
    later: DataEvent | None = None  # if the origin passes on or reads a value: the first that makes one
    launches: int = 0
    operators: int = 0
    undecided: list[OldContents] = field(default_factory=list)  # launches that may have stored one
    reads: list[UndigestedRead] = field(default_factory=list)  # at which the search ended
    unknown: list[str] = field(default_factory=list)  # what is not decided, such as by missing digests
    record: list[str] = field(default_factory=list)  # options of `tracing run` that would show it
    missing: list[str] = field(default_factory=list)  # steps that the run lacks
    digested: bool = True  # the launches have digests
    selected: bool = False  # only some launches were recorded

    @property
    def lacking(self) -> str:
        """What of the program the run lacks: "a step", "a launch"; empty: nothing that is known."""
        return "a step" if self.missing else "a launch" if self.selected else ""

    @property
    def unexplained(self) -> bool:
        """True if digests show such a value, and neither an event that was seen nor the program's own data
        explains it.
        """
        old = [one for one in self.undecided if one.operator or one.tensor.before is None]
        return any(not one.written.given for one in self.reads) or any(not one.given for one in old)

    @property
    def status(self) -> int:
        """The exit status: 1 if there is an origin, 2 if it is not certain, 0 if every value is finite."""
        if self.origin is not None:
            return 2 if self.origin.verb == "may make" else 1
        return 2 if self.unknown or self.undecided else 0


def first_nonfinite(run: Run, kind: Kind = "any") -> NonFiniteAnswer:
    """Search a run; of a job, the lowest rank that has one and did not receive it from another.

    kind -- "nan": inf counts as finite; "inf": NaN counts as finite

    Cost: a pass over the launches and operators, some 10 µs each.
    """
    answer = NonFiniteAnswer(kind)
    for process in run.processes():
        origin = _of_process(run, process, kind, answer)
        if origin is not None and not _received(origin):
            answer.origin = origin
            break
        answer.origin = answer.origin or origin
    _unknown(run, answer)
    return answer


def _received(origin: NonFiniteOrigin) -> bool:
    # whether another rank may have sent it; if that one's is of a collective, too, the collective made it
    return origin.made and is_collective(origin.event.name)


def _of_process(run: Run, process: str, kind: Kind, answer: NonFiniteAnswer) -> NonFiniteOrigin | None:
    origin: NonFiniteOrigin | None = None
    carriers, contents = Carriers(kind), MemoryContents(kind)
    constants: set[str] = set()  # kernels and operators that store such values without computing them
    for event in data_events(run, process):
        if event.allocates:
            contents.allocated(event)
            carriers.forget(event.writes)
            continue
        answer.launches += event.launched
        answer.operators += not event.launched
        read = [one for one in event.reads if one.accessed(kind)]
        wrote = [one for one in event.writes if one.accessed(kind)]
        if origin is not None:
            carriers.follow(event, wrote=bool(wrote))
            if origin.verb in ("passes", "reads") and answer.later is None and event.name not in constants:
                answer.later = _makes_more(run, event, read, wrote, kind, constants)
            continue
        contents.about_to_run(event)
        if read and _from_unknown(read, contents, event, answer):
            return None
        if read or wrote:
            origin = _origin(event, read, wrote, kind, contents)
            carriers.begin(event, wrote or read)
        else:
            contents.ran(event)
    answer.undecided += contents.undecided()
    if any(one.operator for one in answer.undecided):
        answer.record.append(_DIGESTS)
    if origin is None:
        _without_digests(run, contents, answer)
        return _old_origin(contents)
    chain, unwritten = tuple(carriers.chain()), _unwritten(run, process, origin)
    origin = replace(origin, chain=chain, carriers=carriers.count, unwritten=unwritten)
    origin = replace(origin, carriers_known=carriers.certain, scaler=carriers.first(_SCALER))
    return _with_lines(run, origin, kind)


def _makes_more(
    run: Run,
    event: DataEvent,
    read: list[NonFiniteTensor],
    wrote: list[NonFiniteTensor],
    kind: Kind,
    constants: set[str],
) -> DataEvent | None:
    # the event, if it certainly computes such values, and from others; a search in its code is done once
    if read or not wrote or any(one.digest is None for one in event.reads):
        return None
    origin = NonFiniteOrigin(event, _verb(event, [], wrote, kind), tuple(wrote), ())
    if _with_lines(run, origin, kind).verb == "makes":
        return event
    constants.add(event.name)
    return None


def _with_lines(run: Run, origin: NonFiniteOrigin, kind: Kind) -> NonFiniteOrigin:
    source = origin.event.source
    if not isinstance(source, KernelLaunch):
        return origin
    computes = launch_lines(run, origin.event.rank, source)
    nan = kind != "inf" and any(one.bad("nan") for one in origin.tensors)
    fills = filling_lines(run, origin.event.rank, source) if origin.made and nan else ()
    if origin.verb == "passes":  # a number that it is called with
        share = _constant(run, source, origin, kind)
        return replace(origin, computes=computes, verb="passes" if share == "all" else "may make")
    constant = _constant(run, source, origin, kind) if origin.made and not fills else "none"
    verb: Verb = "passes" if constant == "all" else "may make" if fills or constant == "some" else origin.verb
    return replace(origin, computes=computes, fills=fills, constant=constant != "none", verb=verb)


def _constant(run: Run, launch: KernelLaunch, origin: NonFiniteOrigin, kind: Kind) -> Share:
    # which of the values are constants of the kernel's code; none if some of them are computed in any case
    # a constant of a generated kernel may be one that the compiler has computed, as of log(0)
    if (blob := launch.kernel.stages.get("ttir")) is None:
        return "none"
    ttir = run.text(blob)
    kinds: list[Literal["nan", "inf"]] = ["nan", "inf"] if kind == "any" else [kind]
    wrong = [(one.name, bad) for one in origin.tensors for bad in kinds if one.bad(bad)]
    given = {bad: [one.partition("=")[0] for one in origin.event.bad_numbers(bad)] for bad in kinds}
    stored = {stored_constants(ttir, name, bad, given[bad]) for name, bad in wrong}
    generated = is_library(launch.kernel.file or "") and not launch.kernel.copied
    return "none" if "none" in stored else "some" if generated or "some" in stored else "all"


def _unwritten(run: Run, process: str, origin: NonFiniteOrigin) -> tuple[str, ...]:
    source = origin.event.source
    if origin.verb != "reads" or not isinstance(source, KernelLaunch):
        return ()
    accesses = (one for one in run.view(process, Access, Access) if one.launch == source.index)
    counts = {position: count for one in accesses for position, (_, count) in one.uninitialised.items()}
    return tuple(one.name for one in origin.tensors if counts.get(one.position) == prod(one.meta.shape))


def _origin(
    event: DataEvent,
    read: list[NonFiniteTensor],
    wrote: list[NonFiniteTensor],
    kind: Kind,
    contents: MemoryContents,
) -> NonFiniteOrigin:
    old = next((contents.old[one.storage] for one in read if one.storage in contents.old), None)
    verb = _verb(event, read, wrote, kind)
    first, unseen = not contents.undecided(), contents.unseen
    cast = next(filter(None, map(contents.other_dtype, read)), None)
    tensors = tuple(read or wrote)
    return NonFiniteOrigin(event, verb, tensors, (), old=old, first=first, unseen=unseen, cast=cast)


def _old_origin(contents: MemoryContents) -> NonFiniteOrigin | None:
    # nothing recorded made a value or read one, yet a launch left some in a tensor that it wrote
    old = next(iter(contents.old.values()), None)
    if old is None or contents.undecided():
        return None
    return NonFiniteOrigin(old.event, "keeps", (old.tensor,), (), old=old, unseen=contents.unseen)


def _without_digests(run: Run, contents: MemoryContents, answer: NonFiniteAnswer) -> None:
    if contents.undigested and run.info.operators == "digests":
        names = ", ".join(sorted({one.operator for one in contents.undigested.values()}))
        answer.unknown.append(f"what {names} wrote has no digest, and nothing read all of it later")


def _verb(event: DataEvent, read: list[NonFiniteTensor], wrote: list[NonFiniteTensor], kind: Kind) -> Verb:
    if read:
        return "reads"
    computed_nan = any(one.bad("nan") for one in wrote) and not event.bad_numbers("nan")  # 0 * inf
    if event.from_python or (event.bad_numbers(kind) and not (computed_nan and kind != "inf")):
        return "passes"
    return "makes"


def _from_unknown(
    read: list[NonFiniteTensor], contents: MemoryContents, event: DataEvent, answer: NonFiniteAnswer
) -> bool:
    # whether it is not known if what the event reads was made, or was there before
    known = len(answer.unknown) + len(answer.undecided)
    for one in read:
        if one.storage in contents.undigested:
            answer.reads.append(UndigestedRead(event, one.name, contents.undigested[one.storage]))
            answer.unknown.append(str(answer.reads[-1]))
            answer.record.append(_DIGESTS)
        elif one.storage in contents.old and not contents.old[one.storage].certain:
            answer.undecided.append(contents.old[one.storage])
    return len(answer.unknown) + len(answer.undecided) > known


def _lacks_earlier(run: Run, event: DataEvent) -> bool:
    # whether the run lacks steps before that of an event, or launches of a program without steps
    launch = event.source.index if isinstance(event.source, KernelLaunch) else event.source.launch
    for process in run.processes():
        if rank_of(process) == event.rank:
            steps = RecordedSteps.of(run, process)
            if not steps.has_launch(0, 0) or not all(map(steps.has, range(steps.step(launch)))):
                return True
    return False


def _unknown(run: Run, answer: NonFiniteAnswer) -> None:
    info = run.info
    if info.digests == "none":
        answer.unknown.append("the launches have no digests")
        answer.digested = False
        answer.record.append("--digests all")
    if answer.operators and info.operators != "digests" and (answer.origin is None or answer.origin.unseen):
        calls = f"{answer.operators} calls of operators outside of Triton have no digests: one of them"
        if answer.operators == 1:
            calls = "1 call of an operator outside of Triton has no digests: it"
        earlier = " earlier" if answer.origin is not None else ""
        answer.unknown.append(f"{calls} may have made a NaN or an inf{earlier}")
        answer.record.append(_DIGESTS)
    complete = 1 < info.world_size <= len(run.processes())  # else other ranks may have runs of their own
    if answer.origin is not None and _received(answer.origin) and not complete:
        answer.unknown.append(f"what other ranks gave {answer.origin.event.name}: the run lacks some")
        answer.record.append("all ranks")
    if info.operators == "none":
        answer.unknown.append("operators outside of Triton were not recorded")
        answer.record.append(_DIGESTS)
    selection = info.selection
    if selection.kernels or selection.phases or selection.launches or selection.ranks:
        answer.selected = True
        answer.unknown.append("only some launches were recorded")
        answer.record.append("all launches")
    answer.missing = [one.what for one in not_covered_steps(run)]
    answer.unknown += answer.missing
    if answer.origin is not None:
        # steps that were deleted had none if the recording would have ended with the first one
        lacks = not info.steps.watched(answer.kind) and _lacks_earlier(run, answer.origin.event)
        if answer.selected or lacks:
            answer.origin = replace(answer.origin, partial=True)
    damaged = [f"{cut.path.name}: {cut.how}" for cut in cut_files(run.path) if cut.damaged]
    answer.unknown += damaged
    if not run.processes():
        answer.unknown.append("the run has no launches")
    elif answer.origin is None and not damaged:
        ends = (cut_off(run, rank) for rank in sorted({rank_of(process) for process in run.processes()}))
        answer.unknown += [f"later launches: the run {end}" for end in dict.fromkeys(ends) if end]
    answer.record[:] = dict.fromkeys(answer.record)
