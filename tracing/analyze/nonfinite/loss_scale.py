"""Which values depend on the scale of torch.amp.GradScaler, which skips a step whose gradients overflow."""

from __future__ import annotations

from tracing.analyze.nonfinite.data_events import DataEvent
from tracing.model import KernelLaunch, Operator
from tracing.store import Run

CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"
_UPDATE = "aten::_amp_update_scale_"
_FUSED = "aten::_fused_"  # optimizers, which divide by the scale


class LossScale:
    """Follows each scale from the tensor that holds it up to the check, which divides gradients by it; and
    gradients in which the check finds a NaN or an inf, up to the end of the step, which it skips.

    Empty in a process that updates no scale. Cost: a pass over its operators.
    """

    def __init__(self, run: Run, process: str) -> None:
        updates = (one for one in run.operators(process) if one.name == _UPDATE)
        self._held = frozenset(one.storage for update in updates for one in update.writes)  # of each scaler
        self._scaled = set[int | None](self._held)
        self._overflows: dict[int | None, DataEvent] = {}  # by the storage of such gradients: the check
        self._gradients = set[int | None]()  # which the check read, and what was made since
        self._carried: DataEvent | None = None  # the check whose overflow reached other memory
        self.taken: DataEvent | None = None  # the first check whose step an optimizer made nevertheless

    def depends(self, event: DataEvent) -> bool | None:
        """True if an event reads what may depend on the scale; None: the process updates no scale."""
        if not self._held:
            return None
        return _takes_gradient(event) or any(one.storage in self._scaled for one in event.reads)

    def skipped_by(self, event: DataEvent) -> DataEvent | None:
        """The check that has found, earlier in this step, that gradients which an event reads are not finite,
        or what is computed of them, as by clipping.
        """
        checks = (self._overflows.get(one.storage) for one in event.reads)
        return next(filter(None, checks), None)

    def ran(self, event: DataEvent) -> None:
        """Note what an event wrote, or allocated."""
        if not self._held:
            return
        if updates_scale(event):
            self._end_step(event)
            return
        depends, check = self.depends(event), self.skipped_by(event)
        written = {one.storage for one in event.writes if one.storage is not None} - self._held
        made = event.made & written
        self._gradients |= made
        if event.name == CHECK:
            if not self._overflows:
                self._gradients.clear()
            self._gradients |= written
            self._overflows |= {one.storage: event for one in event.writes if one.bad("any")}
        elif check is not None:
            self._overflows |= dict.fromkeys(written, check)
            others = (one for one in event.writes if one.storage not in self._gradients and one.bad("any"))
            if any(one.elements > 1 for one in others):  # a sum of norms, as for a log, is one number
                self._carried = self._carried or check
        else:
            for storage in made:
                self._overflows.pop(storage, None)
        if event.name == CHECK or event.name.startswith(_FUSED):
            self._scaled -= written
        elif depends and not event.allocates:
            self._scaled |= written
        else:
            self._scaled -= made

    def _end_step(self, update: DataEvent) -> None:
        # scaled gradients of a step are of no use after it; an optimizer that steps begins one of the program
        check = self._carried
        if check is not None and _step(check) is not None and _step(check) != _step(update):
            self.taken = self.taken or check
        self._scaled, self._carried = set(self._held), None
        self._overflows.clear()
        self._gradients.clear()


def _step(event: DataEvent) -> int | None:
    return event.source.step if isinstance(event.source, Operator) else None


def _takes_gradient(event: DataEvent) -> bool:
    # a scalar on the CPU, as all are without a GPU, comes to a launch as a number: the loss's gradient
    launch = event.source
    if not isinstance(launch, KernelLaunch) or launch.phase != "backward":
        return False
    return any(isinstance(one.value, float) and one.name.startswith("in_ptr") for one in launch.args)


def updates_scale(event: DataEvent) -> bool:
    """True if torch.amp.GradScaler ends a step by this event."""
    return event.name == _UPDATE
