"""Which values depend on the scale of torch.amp.GradScaler, which skips a step whose gradients overflow."""

from __future__ import annotations

from tracing.analyze.nonfinite.data_events import DataEvent
from tracing.model import KernelLaunch
from tracing.store import Run

CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"
_UPDATE = "aten::_amp_update_scale_"
_FUSED = "aten::_fused_"  # optimizers, which divide by the scale


class LossScale:
    """Follows each scale from the tensor that holds it up to the check, which divides gradients by it; and
    gradients in which the check finds a NaN or an inf, up to the end of the step that is skipped.

    Empty in a process that updates no scale. Cost: a pass over its operators.
    """

    def __init__(self, run: Run, process: str) -> None:
        updates = (one for one in run.operators(process) if one.name == _UPDATE)
        self._held = frozenset(one.storage for update in updates for one in update.writes)  # of each scaler
        self._scaled = set[int | None](self._held)
        self._overflows: dict[int | None, DataEvent] = {}  # by the storage of such gradients: the check

    def depends(self, event: DataEvent) -> bool | None:
        """True if an event reads what may depend on the scale; None: the process updates no scale."""
        if not self._held:
            return None
        return _takes_gradient(event) or any(one.storage in self._scaled for one in event.reads)

    def skipped_by(self, event: DataEvent) -> DataEvent | None:
        """The check that has found, earlier in this step, that gradients which an event reads are not finite,
        or what is computed of them, as by clipping.
        """
        return next(
            (self._overflows[one.storage] for one in event.reads if one.storage in self._overflows), None
        )

    def ran(self, event: DataEvent) -> None:
        """Note what an event wrote, or allocated."""
        if not self._held:
            return
        if updates_scale(event):  # scaled gradients of a step are of no use after it
            self._scaled = set(self._held)
            self._overflows.clear()
            return
        depends, check = self.depends(event), self.skipped_by(event)
        written = {one.storage for one in event.writes if one.storage is not None} - self._held
        made = event.made & written
        if event.name == CHECK:
            self._overflows |= {one.storage: event for one in event.writes if one.bad("any")}
        elif check is not None:
            self._overflows |= dict.fromkeys(written, check)
        else:
            self._overflows = {
                storage: one for storage, one in self._overflows.items() if storage not in made
            }
        if event.name == CHECK or event.name.startswith(_FUSED):
            self._scaled -= written
        elif depends and not event.allocates:
            self._scaled |= written
        else:
            self._scaled -= made


def _takes_gradient(event: DataEvent) -> bool:
    # a scalar on the CPU, as all are without a GPU, comes to a launch as a number: the loss's gradient
    launch = event.source
    if not isinstance(launch, KernelLaunch) or launch.phase != "backward":
        return False
    return any(isinstance(one.value, float) and one.name.startswith("in_ptr") for one in launch.args)


def updates_scale(event: DataEvent) -> bool:
    """True if torch.amp.GradScaler ends a step by this event."""
    return event.name == _UPDATE
