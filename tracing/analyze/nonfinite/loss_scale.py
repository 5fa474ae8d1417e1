"""Which values depend on the scale of torch.amp.GradScaler, which skips a step whose gradients overflow."""

from __future__ import annotations

from tracing.analyze.nonfinite.data_events import DataEvent
from tracing.model import KernelLaunch
from tracing.store import Run

CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"
_UPDATE = "aten::_amp_update_scale_"
_FUSED = "aten::_fused_"  # optimizers, which divide by the scale


class LossScale:
    """Follows the scale from the tensor that holds it up to the check, which divides gradients by it.

    Empty in a process that updates no scale. Cost: a pass over its operators.
    """

    def __init__(self, run: Run, process: str) -> None:
        updates = (one for one in run.operators(process) if one.name == _UPDATE)
        first = next(updates, None)
        self._scaled = {one.storage for one in first.writes} if first is not None else set[int | None]()
        self._held = frozenset(self._scaled)

    def depends(self, event: DataEvent) -> bool | None:
        """True if an event reads what may depend on the scale; None: the process updates no scale."""
        if not self._held:
            return None
        return _takes_gradient(event) or any(one.storage in self._scaled for one in event.reads)

    def ran(self, event: DataEvent) -> None:
        """Note what an event wrote, or allocated."""
        if not self._held:
            return
        written = {one.storage for one in event.writes if one.storage is not None} - self._held
        unscales = event.name == CHECK or event.name.startswith(_FUSED)
        if event.allocates or unscales:
            self._scaled -= written
        elif self.depends(event):
            self._scaled |= written


def _takes_gradient(event: DataEvent) -> bool:
    # a scalar on the CPU, as all are without a GPU, comes to a launch as a number: the loss's gradient
    launch = event.source
    if not isinstance(launch, KernelLaunch) or launch.phase != "backward":
        return False
    return any(isinstance(one.value, float) and one.name.startswith("in_ptr") for one in launch.args)


def updates_scale(event: DataEvent) -> bool:
    """True if torch.amp.GradScaler ends a step by this event."""
    return event.name == _UPDATE
