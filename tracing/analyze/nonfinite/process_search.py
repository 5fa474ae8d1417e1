"""Search the events of one process for the first that has a NaN or an inf, and for what carries it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tracing.analyze.nonfinite.carriers import Carriers
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor
from tracing.analyze.nonfinite.later_makers import LaterMakers
from tracing.analyze.nonfinite.loss_scale import CHECK, LossScale, updates_scale
from tracing.analyze.nonfinite.memory_contents import MemoryContents, OldContents
from tracing.analyze.nonfinite.nonfinite_answer import DIGESTS, NonFiniteAnswer, UndigestedRead
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin, verb_of, with_lines
from tracing.model import Access, KernelLaunch
from tracing.store import Run


class ProcessSearch:
    """Takes the events of a process, in order; then `origin` is the answer."""

    def __init__(self, run: Run, process: str, answer: NonFiniteAnswer) -> None:
        """answer -- gets the counts of events, and what is not known"""
        self._run, self._process, self._answer, self._kind = run, process, answer, answer.kind
        self._origin: NonFiniteOrigin | None = None
        self._unknown: list[UndigestedRead] = []  # instead of an origin: at which the search for it ended
        self._scaled: bool | None = None  # whether it depends on the scale of torch.amp.GradScaler
        self._check: DataEvent | None = None  # which found such values in gradients that the origin reads
        self._ended: int | None = None  # how many carried the value on when its step ended
        self._over = False  # the origin, or the end of the search for it, is known
        self._carriers, self._contents = Carriers(answer.kind), MemoryContents(answer.kind)
        self._scale, self._makers = LossScale(run, process), LaterMakers(run, answer.kind)

    def take(self, event: DataEvent) -> None:
        """The next event."""
        depends, skipped = self._scale.depends(event), self._scale.skipped_by(event)
        self._scale.ran(event)
        if event.allocates:
            self._contents.allocated(event)
            self._carriers.forget(event.writes)
            self._makers.allocated(event)
            return
        self._answer.launches += event.launched
        self._answer.operators += not event.launched
        read = [one for one in event.reads if one.accessed(self._kind)]
        wrote = [one for one in event.writes if one.accessed(self._kind)]
        if self._over:
            self._follow(event, read, wrote, depends=bool(depends), skipped=skipped is not None)
        elif self._begins(event, read, wrote):
            self._scaled, self._check, self._over = depends if skipped is None else True, skipped, True

    def _follow(
        self,
        event: DataEvent,
        read: Sequence[NonFiniteTensor],
        wrote: Sequence[NonFiniteTensor],
        *,
        depends: bool,
        skipped: bool,
    ) -> None:
        # depends -- on the scale of torch.amp.GradScaler; skipped -- the step, by its check
        self._carriers.follow(event, wrote=bool(wrote))
        self._makers.follow(event, wrote=bool(wrote))
        if self._ended is None and updates_scale(event):
            self._ended = self._carriers.count
        origin = self._origin
        meant = origin is None or _may_be_meant(origin, self._scaled, wrote, self._kind)
        if wrote and not read and not skipped and meant:
            self._makers.add(event, wrote, scaled=depends)

    def _begins(self, event: DataEvent, read: list[NonFiniteTensor], wrote: list[NonFiniteTensor]) -> bool:
        # whether the search ends at an event
        self._contents.about_to_run(event)
        undigested, undecided = _from_unknown(read, self._contents, event)
        if undigested or undecided:
            self._unknown = undigested
            self._answer.undecided += undecided
            self._carriers.begin(event, (*read, *event.writes))
        elif read or wrote:
            origin = _origin(event, read, wrote, self._kind, self._contents)
            self._origin = with_lines(self._run, origin, self._kind)
            self._carriers.begin(event, wrote or read)
        else:
            self._contents.ran(event)
            return False
        return True

    def origin(self) -> NonFiniteOrigin | None:
        """The first event that has such a value, after all events; None: none is known."""
        answer, check = self._answer, self._check or self._carriers.first(CHECK)
        answer.later = answer.later or self._makers.first
        if self._over and self._origin is None:
            reads = [replace(one, scaler=check if self._scaled else None) for one in self._unknown]
            answer.reads += reads
            answer.unknown += map(str, reads)
            answer.record += [DIGESTS] if reads else []
            return None
        answer.undecided += self._contents.undecided()
        if any(one.operator for one in answer.undecided):
            answer.record.append(DIGESTS)
        if self._origin is None:
            self._note_undigested()
            return _old_origin(self._contents)
        return self._completed(self._origin, check)

    def _completed(self, origin: NonFiniteOrigin, check: DataEvent | None) -> NonFiniteOrigin:
        carriers, lacks = self._carriers, not self._run.info.selection.selects_all
        return replace(
            origin,
            chain=tuple(carriers.chain()),
            carriers=carriers.count,
            carriers_known=carriers.certain,
            unwritten=_unwritten(self._run, self._process, origin),
            scaler=check,
            scaled=self._scaled,
            stepped=check is not None and check is self._scale.taken,
            unread=bool(self._scaled) and check is None and (lacks or self._ended == carriers.count),
        )

    def _note_undigested(self) -> None:
        undigested = self._contents.undigested
        if undigested and self._run.info.operators == "digests":
            names = ", ".join(sorted({one.operator for one in undigested.values()}))
            self._answer.unknown.append(f"what {names} wrote has no digest, and nothing read all of it later")


def _may_be_meant(
    origin: NonFiniteOrigin, scaled: bool | None, wrote: Sequence[NonFiniteTensor], kind: Kind
) -> bool:
    # whether what another event wrote is of interest, too: after an inf that is made, NaN
    if not origin.made or scaled:
        return True
    only_inf = kind == "any" and not any(one.bad("nan") for one in origin.tensors)
    return only_inf and any(one.accessed("nan") for one in wrote)


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
