"""Every launch of a run: what was launched on what, and the digests of what it found and left.

On a GPU digests are computed behind the launch on its own stream and arrive later, in batches; lines are
written in launch order all the same. Nothing waits for the device before the end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

from tracing.model import Selection
from tracing.record import coverage, cpp, hooks
from tracing.record.catalogue import Catalogue
from tracing.record.landmarks import Landmarks
from tracing.record.last_writers import LastWriters
from tracing.record.launch_digests import Launch, LaunchDigests
from tracing.record.launch_lines import LaunchLines
from tracing.record.operators import OperatorWrites
from tracing.record.outputs import Keep, OutputKeeper
from tracing.record.plans import Digests, Planner, plain_tensor
from tracing.record.selection import EVERYTHING
from tracing.record.sites import Grid, Site
from tracing.record.timing import LaunchTimes
from tracing.record.user_hash import HashFn, UserHashes
from tracing.store import RunWriter


class LaunchRecorder:
    """While entered, every launch in this process that can be seen is written to a run."""

    def __init__(
        self,
        writer: RunWriter,
        digests: Digests = "all",
        *,
        operators: bool = True,
        selection: Selection = EVERYTHING,
        keep: Keep | None = None,
        time: bool = False,
        hash_fn: HashFn | None = None,
    ) -> None:
        """Record into `writer`.

        digests   -- "all": every tensor argument before a launch, and what it may write after it; "declared":
                     what the kernel's IR reads before and writes after; "none": no work on the device at all
        operators -- note which operator outside of Triton wrote a buffer last; 5 to 9 µs an operator
        selection -- which launches
        keep      -- keep what each launch wrote, under a budget; None: nothing
        time      -- how long each launch takes, on the host and on a GPU
        hash_fn   -- tensor -> number, string, bool or None; called where digests are taken, or would be, and
                     recorded beside them. Should it fail, the program goes on, and `hash_failure` says so
        """
        self.count = 0  # launches seen
        self.recorded = 0  # of these
        self.writer = writer
        self._catalogue = Catalogue(writer)
        self._lines = LaunchLines(writer)
        self._digests = LaunchDigests(self._catalogue, self._lines.digested) if digests != "none" else None
        self._operators = operators
        self._selection = selection
        self._keep = keep
        self._keeper = OutputKeeper(
            writer, self._catalogue.not_covered, memory=keep.memory, disk=keep.disk, spill=keep.spill
        ) if keep else None  # fmt: skip
        self._times = LaunchTimes(writer) if time else None
        self._hashes = UserHashes(writer, hash_fn, self._catalogue.not_covered) if hash_fn else None
        self._lock = threading.RLock()  # CUDA's backward launches from autograd's own threads
        self._planner = Planner(self._catalogue, digests)
        self._writers = LastWriters()
        self._beside = any(part is not None for part in (self._keeper, self._times, self._hashes))
        self._exit = ExitStack()

    @property
    def hash_failure(self) -> str:
        """How and where hash_fn failed first; empty if it did not."""
        return self._hashes.failure if self._hashes is not None else ""

    def __enter__(self) -> LaunchRecorder:
        with ExitStack() as stack:
            stack.callback(self._finish)
            stack.enter_context(hooks.installed(self))
            stack.enter_context(cpp.installed(self))
            stack.enter_context(coverage.watched(self._catalogue.not_covered))
            if self._operators:
                landmarks = Landmarks(
                    self.writer, self._catalogue, lambda: self.count, self._digests is not None
                )
                stack.enter_context(landmarks.installed())
                stack.enter_context(OperatorWrites(self._writers.wrote, landmarks))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _finish(self) -> None:
        with self._lock, hooks.hidden():
            if self._digests is not None:
                self._digests.drain()
            self._lines.close()
            for beside in (self._keeper, self._times, self._hashes):
                if beside is not None:
                    beside.close()

    def before(self, site: Site, values: Sequence[Any], stream: int, grid: Grid | None) -> Launch | None:
        """Note a launch and take the digests of what it finds."""
        with self._lock:
            plan = self._planner.plan(site, values, grid)
            if plan.wrapped:
                addresses = tuple([plain_tensor(values[i]).data_ptr() for i in plan.positions])
            else:
                addresses = tuple([values[i].data_ptr() for i in plan.positions])
            place = plan.places.get(addresses) or self._planner.place(plan, addresses)
            index = self.count
            self.count += 1
            writers = self._writers.of(plan, addresses)
            if self._selection is not EVERYTHING and not self._selection.wants(index, site.name, plan.phase):
                return None
            self.recorded += 1
            self._lines.hold(index, plan, stream, place, writers)
            if self._digests is not None:
                self._lines.expect(index)
            elif plan.device is not None and plan.signature is not None and not self._beside:
                return None
            launch = Launch(index, plan, values, addresses, place, stream, plan.before, writers)
            self._look_before(launch)
            return launch

    def _look_before(self, launch: Launch) -> None:
        plan = launch.plan
        if self._hashes is not None:
            self._hashes.before(launch.index, plan.before.positions, launch.values, launch.stream)
        if self._keep is not None and self._keep.inputs:
            # of a first launch all: what it reads is not known
            chosen = plan.reads if plan.signature is not None else range(len(launch.addresses))
            self._kept(launch, "before", chosen)
        if plan.device is None and plan.signature is not None:
            self._lines.flush()  # on disk before the kernel runs
        if self._digests is not None:
            self._digests.before(launch)
        if self._times is not None:
            self._times.start(launch.index, plan.device, launch.stream)

    def after(self, launch: Launch | None) -> None:
        """Take the digests of what the launch left."""
        if launch is None:
            return
        if self._times is not None:
            self._times.stop(launch.index)
        with self._lock:
            plan = launch.plan
            if plan.signature is None:  # by now an autotuner has chosen, an interpreted kernel has run
                self._planner.settle(plan, launch.values)
                launch.place = self._planner.place(plan, launch.addresses)
                launch.writers.update(self._writers.of(plan, launch.addresses))  # the held line's own
            if self._hashes is not None:
                self._hashes.after(launch.index, plan.after.positions, launch.values)
            self._kept(launch, "after", plan.writes)
            if plan.device is None:
                self._lines.flush()
            if self._digests is not None:
                self._digests.after(launch)

    def _kept(self, launch: Launch, side: Literal["before", "after"], chosen: Sequence[int]) -> None:
        if self._keeper is not None:
            for position in (launch.plan.positions[i] for i in chosen):
                self._keeper.keep(launch.index, position, side, plain_tensor(launch.values[position]))
