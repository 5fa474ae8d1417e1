"""Records every launch: kernel, arguments, and the digests before and after it.

On a GPU digests are computed in the order of the launch's own stream and arrive later, in batches; lines are
still written in launch order. Nothing waits for the device before the end.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch

from tracing.launch import coverage, cuda_graphs, hooks
from tracing.launch import cpp_kernels as cpp
from tracing.launch.launch_site import Grid, LaunchSite
from tracing.launch.memory.out_of_bounds import OutOfBoundsError, OutsideAccesses
from tracing.launch.storages import memory_of
from tracing.model import Selection, StepSelection
from tracing.record.graphs.graph_recorder import GraphRecorder
from tracing.record.held_lines import written_after_signal
from tracing.record.landmarks import Landmarks
from tracing.record.launches.cuda_graphs import RecordedCudaGraphs
from tracing.record.launches.host_launches import HostLaunches
from tracing.record.launches.known_launches import KnownLaunches
from tracing.record.launches.launch_digests import LaunchDigests, LaunchInFlight
from tracing.record.launches.launch_extras import LaunchExtras
from tracing.record.launches.launch_template import (
    DigestedArguments,
    LaunchTemplate,
    LaunchTemplates,
    plain_tensor,
)
from tracing.record.launches.recorded_operators import RecordedOperators
from tracing.record.launches.selection import EVERY_STEP, EVERYTHING
from tracing.record.launches.step_control import StepControl
from tracing.record.launches.user_hash import HashFn
from tracing.record.memory.overwritten_buffers import OverwrittenBuffers
from tracing.record.operator_calls import OperatorCalls, OperatorFacts
from tracing.record.operator_digests import OperatorDigestQueue
from tracing.record.outputs import Keep
from tracing.record.recording import Recording
from tracing.store import RunWriter
from tracing.upstream.torch.cuda_graphs import is_capturing


class LaunchRecorder:
    """While entered, every launch of this process is recorded into a run, except for those not covered."""

    def __init__(
        self,
        writer: RunWriter,
        digests: DigestedArguments = "all",
        *,
        operators: OperatorFacts = "writers",
        graphs: bool = True,
        allow_out_of_bounds: bool = False,
        selection: Selection = EVERYTHING,
        steps: StepSelection = EVERY_STEP,
        keep: Keep | None = None,
        time: bool = False,
        hash_fn: HashFn | None = None,
        strict: bool = True,
    ) -> None:
        """Record into `writer`.

        digests   -- "all": every tensor argument before a launch, and possible outputs after it; on a GPU no
                     tensor before a launch that only overwrites it, as a whole; "declared": the kernel's
                     inputs before and its outputs after, by its IR; "none": no work on the device
        operators -- "writers": the memory that each operator outside of Triton read, wrote and allocated, 10
                     to 13 µs an operator; "digests": also digests, in stream order; "none": nothing
        graphs    -- record the graphs that Inductor compiles, and the launches of each call
        allow_out_of_bounds -- without a GPU: False stops a kernel before it accesses memory outside of its
                     arguments' storages; True lets it continue: it accesses the storages of other
                     tensors, loads 0 from other memory, and stores nothing there
        selection -- which launches
        steps     -- which steps are written, and which of them stay on disk
        keep      -- keep the outputs of each launch, under a budget; None: nothing
        time      -- how long each launch takes, on the host and on a GPU
        hash_fn   -- tensor -> number, string, bool or None; called where digests are taken, or would be, and
                     recorded next to them. Should it fail, the program continues, and `hash_failure` says so
        strict    -- raise errors of the recorder; False: an error ends the recording, and the program
                     continues
        """
        self.writer, self._selection = writer, selection
        self._recording = recording = Recording.of(writer, steps, strict=strict)
        self.failsafe, self._flight, self._lines = recording.failsafe, recording.flight, recording.lines
        if self._flight.watch is not None:
            self._flight.watch.declared = digests == "declared"
        catalogue, digested = recording.catalogue, digests != "none"
        extras = LaunchExtras(writer, catalogue.not_covered, keep=keep, time=time, hash_fn=hash_fn)
        queue = OperatorDigestQueue(writer, catalogue.not_covered) if operators == "digests" else None
        self._extras = extras if extras else None
        self._digests = LaunchDigests(catalogue, self._lines.digested) if digested else None
        self._templates = LaunchTemplates(catalogue, recording.storages, digests)
        self._overwritten = OverwrittenBuffers(writer)
        self.allow_out_of_bounds = allow_out_of_bounds
        self._host = HostLaunches(
            recording, digests=digested, operators=operators != "none",
            allow_out_of_bounds=allow_out_of_bounds,
        )  # fmt: skip
        self._captured = RecordedCudaGraphs(
            recording, self._admitted, self._templates,
            digests=digested, operators_digested=queue.arrived if queue else None,
        )  # fmt: skip
        self._calls = OperatorCalls(
            recording, self._host, self._captured,
            digests=queue, inputs=extras.operator_inputs(selection.launches),
        )  # fmt: skip
        self._records_operators = operators != "none"
        self._operators = RecordedOperators(recording, self._calls, Landmarks(recording, digests=digested))
        self._graphs = GraphRecorder(recording, extras.keeper) if graphs else None
        self._steps = StepControl(
            recording, self._calls, self._host, self._captured, self._digests, self._extras
        )
        self._known = self._known_launches(extras)
        self._exit = ExitStack()

    def _known_launches(self, extras: LaunchExtras) -> KnownLaunches | None:
        # what records launches in C++; None: Python records all
        times = extras.only_times
        if self._host.interprets or (extras and times is None):
            return None
        return KnownLaunches(
            self._recording, self._digests, times, self._selection, self._templates, self._captured
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Launches seen, recorded or not."""
        return self._recording.launches

    @property
    def outside_accesses(self) -> list[tuple[str, OutsideAccesses]]:
        """Accesses outside of arguments with the kernel's name, as `ExactAccesses.outside`."""
        return self._host.outside

    def unwritten(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """The elements of a tensor on the host without a recorded write: the first, and how many."""
        return self._host.unwritten(tensor)

    @property
    def recorded(self) -> int:
        """Launches recorded."""
        return self._recording.recorded

    @property
    def kept(self) -> str:
        """The recorded part, ", 60 recorded; steps 944:1000 are on disk"; empty if it is all."""
        until = " until the recording ended" if self.failsafe.over else ""
        recorded = f", {self.recorded} recorded" if self.recorded < self.count else ""
        return until + recorded + self._flight.text

    @property
    def hash_failure(self) -> str:
        """The first failure of hash_fn, and its location; empty if it did not fail."""
        return self._extras.hash_failure if self._extras is not None else ""

    def __enter__(self) -> LaunchRecorder:
        self._recording.thread.seen = True  # an unknown launch has number 0
        with ExitStack() as stack:
            stack.callback(self._finish)
            stack.enter_context(hooks.installed(self, self._known))
            stack.enter_context(cpp.installed(self))
            if self._graphs is not None:
                stack.enter_context(self._graphs.installed())
            stack.enter_context(self._host.installed())
            stack.enter_context(coverage.watched(self._recording.catalogue.not_covered))
            stack.enter_context(cuda_graphs.watched(self._captured))
            if self._records_operators:
                stack.enter_context(self._operators.installed())
            stack.enter_context(self._steps.installed())
            stack.enter_context(written_after_signal(self.writer, self._lines.held, self._calls.held))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def _finish(self) -> None:
        if not self.writer.writes_here:
            return  # in a forked process, in which the lock may be held for ever
        with self._recording.lock, hooks.hidden():
            if self.failsafe.over:
                self._calls.flush()
            else:
                if self._digests is not None:
                    self._digests.streams.drain()
                self._captured.drain()
                self._calls.close()
            self._lines.close()
            if self._extras is not None:
                self._extras.close()
            self._steps.close()

    def flush(self) -> None:
        """Write buffered records: the process is about to end without leaving this context."""
        if not self.failsafe.over:
            self._finish()

    def before(
        self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None
    ) -> LaunchInFlight | object:
        """Record a launch and take the digests before it."""
        if self.failsafe.over:
            return hooks.NOTHING_AFTER
        if self._flight.paused and self._steps.passes_over():
            self._steps.count()
            return hooks.NOTHING_AFTER
        try:
            return self._before(site, values, stream, grid) or hooks.NOTHING_AFTER
        except OutOfBoundsError:  # the program's own
            raise
        except Exception as error:
            self.failsafe.end(error)
            return hooks.NOTHING_AFTER

    def _before(
        self, site: LaunchSite, values: Sequence[Any], stream: int, grid: Grid | None
    ) -> LaunchInFlight | None:
        flat = site.flat
        if flat is not None:
            site, values = flat, flat.values(values)
        with self._recording.lock:
            self._lines.flush_if_long()
            recording, template = self._recording, self._templates.get(site, values, grid)
            if template.wrapped:
                memory = memory_of([plain_tensor(values[i]) for i in template.positions])
            else:
                memory = memory_of([values[i] for i in template.positions])
            slots = template.slots_of.get(memory)
            if slots is None:
                self._operators.look_at_launch()
                slots = self._templates.slots(template, memory, values)
            self._templates.refresh(slots, template)
            template, thread = slots.template, recording.thread
            thread.slots = slots
            if thread.seen is None:
                self._operators.look_at(thread)
            if template.device is not None and is_capturing():
                launch = LaunchInFlight(-1, template, values, memory, slots, stream, template.before, {})
                return self._capture(launch, recording.sites.of(sys._getframe(3)))
            writers = self._recording.writers.of(slots)
            index = self._admitted(template)
            if index is None:
                if _followed(template):
                    self._host.pass_over(recording.launches - 1, template, values)
                return None
            called = recording.sites.of(sys._getframe(3))
            self._lines.hold(index, template, stream, slots, writers, called, thread.number)
            if self._digests is not None:
                self._lines.expect(index, template)
            elif template.device is not None and template.signature is not None and self._extras is None:
                return None
            launch = LaunchInFlight(index, template, values, memory, slots, stream, template.before, writers)
            self._look_before(launch)
            return launch

    def _admitted(self, template: LaunchTemplate) -> int | None:
        # the number of the next launch; None: it is not selected
        index = self._recording.launches
        self._recording.launches += 1
        if self._flight.paused:
            return None
        everything = self._selection is EVERYTHING
        if not everything and not self._selection.wants(index, template.site.name, template.phase):
            return None
        self._recording.recorded += 1
        return index

    def _capture(self, launch: LaunchInFlight, site: int) -> LaunchInFlight | None:
        if not self._captured.launch(launch, site, self._recording.thread.number):
            return None
        if self._extras is not None:
            what = "times, kept tensors and values of hash_fn of launches inside of CUDA graphs"
            self._recording.catalogue.not_covered(what, coverage.NO_GRAPHS)
        if self._digests is not None:
            self._digests.before(launch)
        return launch

    def _look_before(self, launch: LaunchInFlight) -> None:
        template = launch.template
        if self._extras is not None:
            self._extras.before(launch)
        if template.device is None and template.signature is not None:
            self._steps.flush_lines()  # on disk before the kernel runs
        if _followed(template):
            self._host.before(launch, functools.partial(self._sign, launch))
        if self._digests is not None:
            self._digests.before(launch)
        if self._extras is not None:
            self._extras.started(launch)

    def after(self, launch: LaunchInFlight) -> None:
        """Compute the digests after the launch."""
        if self.failsafe.over:
            return
        if self._extras is not None and launch.captured is None:
            self._extras.stopped(launch)
        try:
            self._after(launch)
        except OutOfBoundsError:
            raise
        except Exception as error:
            self.failsafe.end(error)

    def _after(self, launch: LaunchInFlight) -> None:
        with self._recording.lock:
            template = launch.template
            if template.signature is None:  # by now an autotuner has chosen, an interpreted kernel has run
                self._settle(launch)
                self._lines.flush()
            if launch.captured is not None:
                self._captured.launched(launch)
                if self._digests is not None:
                    self._digests.after(launch)
                return
            if not template.looked_at:  # each instruction of generated code has its own template
                template.looked_at = True
                self._overwritten.look(launch, sys._getframe(1))
            if self._extras is not None:
                self._extras.after(launch)
            if template.device is None:
                self._steps.flush_lines()
            if self._digests is not None:
                self._digests.after(launch)
            if _followed(template):
                self._host.after(launch)

    def _settle(self, launch: LaunchInFlight) -> None:
        self._templates.settle(launch.template, launch.values)
        launch.slots = self._templates.slots(launch.template, launch.memory, launch.values)
        self._recording.thread.slots = launch.slots
        launch.writers.update(self._recording.writers.of(launch.slots))  # the held line's own

    def _sign(self, launch: LaunchInFlight) -> None:
        # the launch may not return: its line is written before
        if launch.template.signature is None:
            if launch.template.site.accesses is not None:
                launch.template.site.accesses.interrupted = True
            self._settle(launch)
        self._steps.flush_lines()


def _followed(template: LaunchTemplate) -> bool:
    # on the host, or marked as not digested
    return template.device is None or template.site.kind == "interpreted"
