"""After a first NaN or inf: the next event that computes one from finite values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracing.analyze.nonfinite.carriers import Carriers
from tracing.analyze.nonfinite.data_events import DataEvent, Kind, NonFiniteTensor
from tracing.analyze.nonfinite.loss_scale import CHECK, updates_scale
from tracing.analyze.nonfinite.nonfinite_origin import NonFiniteOrigin, verb_of, with_lines
from tracing.store import Run


class _Maker(NamedTuple):
    event: DataEvent
    scaled: Carriers | None  # of a value that depends on the scale of torch.amp.GradScaler: it may skip it
    ended: int | None = None  # how many carried that value on when its step ended


class LaterMakers:
    """Follows the events after the first one, up to those that certainly compute a value of the kind.

    Left out is what depends on the scale of torch.amp.GradScaler, and reaches its check, which skips that
    step, or is not read after the step, as gradients that another optimizer sets to zero.
    """

    def __init__(self, run: Run, kind: Kind) -> None:
        self._run, self._kind = run, kind
        self._makers: list[_Maker] = []  # none is after one whose value the scale did not cause
        self._constants: set[str] = set()  # kernels and operators that store values without computing them

    @property
    def first(self) -> DataEvent | None:
        """The first of them."""
        return next((one.event for one in self._makers if one.scaled is None), None)

    def allocated(self, event: DataEvent) -> None:
        """Memory was allocated: it holds none of their values."""
        for one in self._makers:
            if one.scaled is not None:
                one.scaled.forget(event.writes)

    def follow(self, event: DataEvent, *, wrote: bool) -> None:
        """An event runs after those that were added; wrote: a tensor that it wrote holds such a value."""
        for one in self._makers:
            if one.scaled is not None:
                one.scaled.follow(event, wrote=wrote)
        if event.name == CHECK:
            self._makers = [one for one in self._makers if not (one.scaled and one.scaled.first(CHECK))]
        if updates_scale(event):
            self._end_step()
        else:
            self._makers = [_certain(one) for one in self._makers]

    def _end_step(self) -> None:
        # a launch that the run lacks may take a value to the check
        complete = self._run.info.selection.selects_all
        waiting = [one for one in self._makers if one.scaled is None or (complete and one.ended is None)]
        self._makers = [one._replace(ended=one.scaled.count if one.scaled else None) for one in waiting]

    def add(self, event: DataEvent, wrote: Sequence[NonFiniteTensor], *, scaled: bool) -> None:
        """Add an event that reads no such value, and wrote some, if it certainly computed them.

        scaled -- what it reads depends on the scale of torch.amp.GradScaler
        """
        if not all(one.scaled for one in self._makers) or not self._computes(event, wrote):
            return
        carriers = Carriers(self._kind) if scaled else None
        if carriers is not None:
            carriers.begin(event, wrote)
        self._makers.append(_Maker(event, carriers))

    def _computes(self, event: DataEvent, wrote: Sequence[NonFiniteTensor]) -> bool:
        # a search in its code is done once
        if event.name in self._constants or any(one.digest is None for one in event.reads):
            return False
        origin = NonFiniteOrigin(event, verb_of(event, [], wrote, self._kind), tuple(wrote), ())
        if with_lines(self._run, origin, self._kind).verb == "makes":
            return True
        self._constants.add(event.name)
        return False


def _certain(one: _Maker) -> _Maker:
    # after its step something reads the value
    read = one.scaled is not None and one.ended is not None and one.scaled.count > one.ended
    return one._replace(scaled=None) if read else one
