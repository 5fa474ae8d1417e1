"""Find the first launch or operator that produces a NaN or an inf from finite inputs, and its readers.

Launches and operators are taken in the order in which they were made. The counts of NaN and inf in their
digests decide, and those of the elements that a launch accessed, where they are known; a tensor without a
digest is reported with the option that would record it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tracing.analyze.nonfinite.carriers import Carriers
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor, data_events
from tracing.analyze.nonfinite.later_makers import LaterMakers
from tracing.analyze.nonfinite.loss_scale import CHECK, LossScale, updates_scale
from tracing.analyze.nonfinite.memory_contents import MemoryContents, OldContents, Undigested
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin, verb_of, with_lines
from tracing.analyze.runs.outcomes import cut_off
from tracing.analyze.runs.recorded_steps import RecordedSteps, not_covered_steps
from tracing.model import Access, KernelLaunch
from tracing.model.collectives import is_collective
from tracing.store import Run, rank_of
from tracing.store.cut_files import cut_files

_DIGESTS = "--operators digests"


@dataclass(frozen=True, slots=True)
class UndigestedRead:
    """An event that reads such a value from memory which an operator without digests wrote."""

    event: DataEvent
    tensor: str
    written: Undigested
    scaler: DataEvent | None = None  # if the scale of torch.amp.GradScaler may cause it: its check after it

    @property
    def explained(self) -> bool:
        """True if it may be a number or data of the program, or an overflow for which a step is skipped."""
        return self.written.given or self.scaler is not None

    def __str__(self) -> str:
        reads = f"{self.event.name} (#{self.event.source.index}) reads one in {self.tensor}"
        text = f"{reads}, which {self.written.text} wrote: its inputs have no digests"
        if self.scaler is None:
            return text
        check = f"torch.amp.GradScaler checks the gradients by operator #{self.scaler.source.index}"
        return f"{text}; {check}, and skips a step in which its scale causes an inf"


@dataclass(slots=True)
class NonFiniteAnswer:
    """The answer to `tracing nan`; `origin` None and no `unknown`: every value is finite."""

    kind: Kind = "any"  # "nan": inf counts as finite; "inf": NaN counts as finite
    origin: NonFiniteOrigin | None = None
    # if the origin is not known, or does not compute the values, or may mean them: the first that certainly
    # makes one, of finite values; after an origin that makes inf and no NaN: a NaN
    later: DataEvent | None = None
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
        return any(not one.explained for one in self.reads) or any(not one.given for one in old)

    @property
    def status(self) -> int:
        """The exit status: 1 if an event is named, 2 if it is not certain, 0 if every value is finite."""
        if self.later is not None:
            return 1
        if self.origin is not None:
            return 2 if self.origin.verb == "may make" else 1
        return 2 if self.unknown or self.undecided or self.reads else 0


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
    unknown: list[UndigestedRead] | None = None  # instead of an origin: at which the search for it ended
    scaled: bool | None = None  # whether it depends on the scale of torch.amp.GradScaler
    carriers, contents, scale = Carriers(kind), MemoryContents(kind), LossScale(run, process)
    makers = LaterMakers(run, kind)
    check: DataEvent | None = None  # which found such values in gradients that the origin reads
    ended: int | None = None  # how many carried the value on when its step ended
    for event in data_events(run, process):
        depends, skipped = scale.depends(event), scale.skipped_by(event)
        scale.ran(event)
        if event.allocates:
            contents.allocated(event)
            carriers.forget(event.writes)
            makers.allocated(event)
            continue
        answer.launches += event.launched
        answer.operators += not event.launched
        read = [one for one in event.reads if one.accessed(kind)]
        wrote = [one for one in event.writes if one.accessed(kind)]
        if origin is not None or unknown is not None:
            carriers.follow(event, wrote=bool(wrote))
            makers.follow(event, wrote=bool(wrote))
            ended = carriers.count if ended is None and updates_scale(event) else ended
            wanted = skipped is None and (origin is None or _may_be_meant(origin, scaled, wrote, kind))
            if wrote and not read and wanted:
                makers.add(event, wrote, scaled=bool(depends))
            continue
        contents.about_to_run(event)
        undigested, undecided = _from_unknown(read, contents, event)
        if undigested or undecided:
            unknown, check = undigested, skipped
            scaled = True if skipped is not None else depends
            answer.undecided += undecided
            carriers.begin(event, (*read, *event.writes))
        elif read or wrote:
            origin = with_lines(run, _origin(event, read, wrote, kind, contents), kind)
            scaled, check = True if skipped is not None else depends, skipped
            carriers.begin(event, wrote or read)
        else:
            contents.ran(event)
    answer.later = answer.later or makers.first
    check = check or carriers.first(CHECK)
    if unknown is not None:
        _note_reads([replace(one, scaler=check if scaled else None) for one in unknown], answer)
        return None
    answer.undecided += contents.undecided()
    if any(one.operator for one in answer.undecided):
        answer.record.append(_DIGESTS)
    if origin is None:
        _without_digests(run, contents, answer)
        return _old_origin(contents)
    chain, unwritten = tuple(carriers.chain()), _unwritten(run, process, origin)
    origin = replace(origin, chain=chain, carriers=carriers.count, unwritten=unwritten)
    stepped = check is not None and check is scale.taken
    lacks = not run.info.selection.selects_all
    unread = bool(scaled) and check is None and (lacks or ended == carriers.count)
    origin = replace(origin, scaler=check, scaled=scaled, stepped=stepped, unread=unread)
    return replace(origin, carriers_known=carriers.certain)


def _may_be_meant(
    origin: NonFiniteOrigin, scaled: bool | None, wrote: Sequence[NonFiniteTensor], kind: Kind
) -> bool:
    # whether what another event wrote is of interest, too: after an inf that is made, NaN
    if not origin.made or scaled:
        return True
    only_inf = kind == "any" and not any(one.bad("nan") for one in origin.tensors)
    return only_inf and any(one.accessed("nan") for one in wrote)


def _note_reads(reads: Sequence[UndigestedRead], answer: NonFiniteAnswer) -> None:
    answer.reads += reads
    answer.unknown += map(str, reads)
    answer.record += [_DIGESTS] if reads else []


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
    verb = verb_of(event, read, wrote, kind)
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


def _from_unknown(
    read: Sequence[NonFiniteTensor], contents: MemoryContents, event: DataEvent
) -> tuple[list[UndigestedRead], list[OldContents]]:
    # of what an event reads: what was written by operators without digests, or may have been there before
    undigested, undecided = list[UndigestedRead](), list[OldContents]()
    for one in read:
        if one.storage in contents.undigested:
            undigested.append(UndigestedRead(event, one.name, contents.undigested[one.storage]))
        elif one.storage in contents.old and not contents.old[one.storage].certain:
            undecided.append(contents.old[one.storage])
    return undigested, undecided


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
    if not info.selection.selects_all:
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
