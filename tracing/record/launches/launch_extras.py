"""Records on request: kept tensors, times, and the values of a user's hash_fn of each launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from tracing.record.launches.launch_digests import LaunchInFlight
from tracing.record.launches.launch_template import plain_tensor
from tracing.record.launches.timing import LaunchTimes
from tracing.record.launches.user_hash import HashFn, UserHashes
from tracing.record.operator_inputs import OperatorInputs
from tracing.record.outputs import Keep, keeper_of
from tracing.store import RunWriter


class LaunchExtras:
    """The requested ones of these parts; false if none is."""

    def __init__(
        self,
        writer: RunWriter,
        not_covered: Callable[[str, str], None],
        *,
        keep: Keep | None,
        time: bool,
        hash_fn: HashFn | None,
    ) -> None:
        """keep, time, hash_fn -- as for `LaunchRecorder`"""
        self._not_covered = not_covered
        self._inputs = keep is not None and keep.inputs
        self.keeper = keeper_of(keep, writer, not_covered)
        self._times = LaunchTimes(writer) if time else None
        self._hashes = UserHashes(writer, hash_fn, not_covered) if hash_fn else None

    def __bool__(self) -> bool:
        return any(part is not None for part in (self.keeper, self._times, self._hashes))

    @property
    def only_times(self) -> LaunchTimes | None:
        """The times, if nothing else is requested."""
        return self._times if self.keeper is None and self._hashes is None else None

    @property
    def hash_failure(self) -> str:
        """The first failure of hash_fn, and its location; empty if it did not fail."""
        return self._hashes.failure if self._hashes is not None else ""

    def operator_inputs(self, launches: tuple[int, int] | None) -> OperatorInputs | None:
        """Keeps the inputs of operators before one of the launches START, STOP; None: inputs are not kept."""
        if self.keeper is None or not self._inputs:
            return None
        return OperatorInputs(self.keeper, self._not_covered, launches)

    def before(self, launch: LaunchInFlight) -> None:
        """Take what is wanted of the inputs of a launch."""
        template = launch.template
        if self._hashes is not None:
            self._hashes.before(launch.index, template.before.positions, launch.values, launch.stream)
        if self._inputs:
            # of a first launch all: what it reads is not known
            chosen = template.reads if template.signature is not None else range(len(template.positions))
            self._kept(launch, "before", chosen)

    def started(self, launch: LaunchInFlight) -> None:
        """The launch is made as soon as this returns."""
        if self._times is not None:
            self._times.start(launch.index, launch.template.device, launch.stream)

    def stopped(self, launch: LaunchInFlight) -> None:
        """The launch has returned."""
        if self._times is not None:
            self._times.stop(launch.index)

    def after(self, launch: LaunchInFlight) -> None:
        """Take what is wanted of the outputs of a launch."""
        template = launch.template
        if self._hashes is not None:
            self._hashes.after(launch.index, template.after.positions, launch.values)
        self._kept(launch, "after", template.writes)

    def step_ended(self) -> None:
        """Write what a killed process would lose; waits for the device if tensors are kept."""
        if self.keeper is not None:
            self.keeper.close()
        if self._times is not None:
            self._times.flush()

    def close(self) -> None:
        """Write everything; waits for the device."""
        for part in (self.keeper, self._times, self._hashes):
            if part is not None:
                part.close()

    def _kept(self, launch: LaunchInFlight, side: Literal["before", "after"], chosen: Sequence[int]) -> None:
        if self.keeper is not None:
            for position in (launch.template.positions[i] for i in chosen):
                self.keeper.keep(launch.index, position, side, plain_tensor(launch.values[position]))
