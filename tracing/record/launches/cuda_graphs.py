"""Records the launches and operators of CUDA graphs: in each replay those that were captured, in order.

A capture executes nothing, so it records no launch. The digests of the launches are captured with them, and
each replay computes them; see `tracing.digest.captured`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch

from tracing.digest.captured import CapturedDigests
from tracing.digest.columns import Columns, DigestedLaunches
from tracing.digest.kernel_launches import load_before_capture
from tracing.digest.spare_memory import spare_memory
from tracing.launch import hooks
from tracing.launch.coverage import EARLIER
from tracing.launch.hidden_computation import HiddenComputation
from tracing.record.launches.launch_digests import CapturedLaunch, LaunchInFlight
from tracing.record.launches.launch_template import LaunchTemplate, LaunchTemplates
from tracing.record.recording import Recording
from tracing.upstream.torch.cuda_graphs import is_capturing, kernel_names
from tracing.upstream.torch.streams import current_handle

# records one captured operator in a replay: fills in the numbers of its digests, by row of the graph's
CapturedOperator: TypeAlias = Callable[[list[int | None]], None]


@dataclass(slots=True)
class CapturedCudaGraph:
    """What one graph captured, in order."""

    device: int
    stream: int  # handle of the stream on which the capture began
    thread: int  # its identifier
    digests: CapturedDigests | None  # of launches; None: they are not wanted
    operator_digests: CapturedDigests | None
    events: list[CapturedLaunch | CapturedOperator] = field(default_factory=list)
    launches: int = 0

    @property
    def all_digests(self) -> list[CapturedDigests]:
        """Those of launches and of operators."""
        return [one for one in (self.digests, self.operator_digests) if one is not None]


class Replay(NamedTuple):
    """The numbers under which the digests of one replay arrive; None: they are not wanted."""

    launches: list[int | None]  # by launch of the graph
    operators: list[int | None]  # by row of its `operator_digests`


class RecordedCudaGraphs:
    """The graphs of a program; a listener of `tracing.launch.cuda_graphs`.

    Cost of a replay: 3 µs a launch, one copy and one fill on the device for each 4096 digests.
    """

    def __init__(
        self,
        recording: Recording,
        admit: Callable[[LaunchTemplate], int | None],
        templates: LaunchTemplates,
        *,
        digests: bool,
        operators_digested: Callable[[DigestedLaunches], None] | None,
    ) -> None:
        """admit   -- numbers the next launch; None: it is not selected
        templates -- write the records that a launch refers to
        digests -- whether launches have digests
        operators_digested -- receives the digests of operators; None: they have none
        """
        self.passes_over: Callable[[], bool] = lambda: False  # True: replays are counted, and not recorded
        self._templates = templates
        self._recording, self._admit, self._digests = recording, admit, digests
        self._operators_digested = operators_digested
        self.open_graphs: list[CapturedCudaGraph] = []
        self._digested: list[CapturedDigests] = []  # also of graphs that were deleted
        self._graphs: weakref.WeakKeyDictionary[torch.cuda.CUDAGraph, CapturedCudaGraph] = (
            weakref.WeakKeyDictionary()
        )

    # ---- while a graph is captured

    @property
    def open(self) -> bool:
        """True while some graph is captured."""
        return bool(self.open_graphs)

    def capturing(self) -> CapturedCudaGraph | None:
        """The graph that captures the work of this thread; None: none, or several on other threads."""
        if not self.open_graphs or not is_capturing():
            return None
        own = [graph for graph in self.open_graphs if graph.thread == threading.get_ident()]
        return (own or self.open_graphs)[-1] if own or len(self.open_graphs) == 1 else None

    def launch(self, launch: LaunchInFlight, site: int, thread: int) -> bool:
        """Note a launch that is captured; False: nothing is known of the capture."""
        graph = self.capturing()
        if graph is None:
            what = "launches captured into a CUDA graph that the recorder did not see begin"
            self._recording.catalogue.not_covered(what, EARLIER)
            return False
        launch.index = graph.launches
        graph.launches += 1
        launch.captured = CapturedLaunch(launch.slots, launch.stream, site, thread)
        launch.graph = graph.digests
        graph.events.append(launch.captured)
        return True

    def launched(self, launch: LaunchInFlight) -> None:
        """The launch was captured, and its autotuner has chosen."""
        assert launch.captured is not None
        launch.captured.slots = launch.slots

    def captures(self, tensors: Sequence[torch.Tensor]) -> CapturedCudaGraph | None:
        """The graph that captures an operator on these tensors; None: it is executed now."""
        return self.capturing() if any(tensor.is_cuda for tensor in tensors) else None

    def capture_begins(self, graph: torch.cuda.CUDAGraph) -> None:
        """Allocate and load what the digests of the captured launches need."""
        if not self._recording.failsafe.over:
            self._safely(self._begin, graph)

    def _begin(self, graph: torch.cuda.CUDAGraph) -> None:
        device = torch.device("cuda", torch.cuda.current_device())
        launches, operators = (
            None if receiver is None else CapturedDigests(device, spare_memory(device), receiver)
            for receiver in (
                self._recording.lines.digested if self._digests else None,
                self._operators_digested,
            )
        )
        stream = current_handle(device.index)
        captured = CapturedCudaGraph(device.index, stream, threading.get_ident(), launches, operators)
        if captured.all_digests:
            spare_memory(device).fill()
            load_before_capture(device.index)
        self._digested = [one for one in self._digested if not one.over] + captured.all_digests
        for digests in captured.all_digests:
            weakref.finalize(graph, digests.graph_deleted).atexit = False
        self._graphs[graph] = captured
        self.open_graphs.append(captured)

    def capture_ended(self, graph: torch.cuda.CUDAGraph) -> None:
        """From now on the launches of this thread are executed."""
        captured = self._graphs.get(graph)
        if captured is not None and captured in self.open_graphs:
            self.open_graphs.remove(captured)

    # ---- in each replay

    def replay_begins(self, graph: torch.cuda.CUDAGraph) -> Replay | None:
        """Write the lines of what was captured; None: the replay is not recorded."""
        if self._recording.failsafe.over:
            return None
        captured = self._graphs.get(graph)
        if captured is None:
            self._not_covered(graph)
            return None
        replay: Replay | None = self._safely(self._written, captured)
        return replay

    def _written(self, captured: CapturedCudaGraph) -> Replay | None:
        if self.passes_over():
            self._recording.launches += captured.launches
            return None
        stream = current_handle(captured.device)
        digested = captured.operator_digests
        replay = Replay([], [None] * (digested.rows if digested is not None else 0))
        with self._recording.lock:
            for event in captured.events:
                if isinstance(event, CapturedLaunch):
                    on = stream if event.stream == captured.stream else event.stream
                    replay.launches.append(self._launched(event, on))
                else:
                    event(replay.operators)
        for digests in captured.all_digests:
            digests.before_replay()
        return replay

    def _launched(self, event: CapturedLaunch, stream: int) -> int | None:
        slots, lines = event.slots, self._recording.lines
        lines.flush_if_long()
        self._templates.refresh(slots)
        writers = self._recording.writers.of(slots)
        index = self._admit(slots.template)
        if index is not None:
            lines.hold(index, slots.template, stream, slots, writers, event.site, event.thread)
            if self._digests:
                lines.expect(index, slots.template)
                if not event.digested:
                    lines.digested(DigestedLaunches.one(index, Columns.of([])))
        return index

    def replayed(self, graph: torch.cuda.CUDAGraph, replay: Replay | None) -> None:
        """Fetch the digests of the replay."""
        captured = self._graphs.get(graph)
        if captured is None or self._recording.failsafe.over:
            return
        numbers = (replay.launches, replay.operators) if replay is not None else (None, None)
        for digests, some in zip((captured.digests, captured.operator_digests), numbers, strict=True):
            if digests is not None:
                self._safely(self._fetch, digests, some)

    def _fetch(self, digests: CapturedDigests, numbers: Sequence[int | None] | None) -> None:
        if numbers is None:
            digests.passed_over()
            return
        digests.replayed(numbers)
        if not self.open_graphs:
            digests.deliver()

    def hand_over(self, *, wait: bool) -> None:
        """Deliver the digests that have arrived; wait: of all replays so far."""
        for digests in self._digested if not self.open_graphs else ():
            self._safely(digests.drain if wait else digests.deliver)

    def drain(self) -> None:
        """Wait for the digests of all replays."""
        for digests in self._digested:
            digests.drain()

    def _not_covered(self, graph: torch.cuda.CUDAGraph) -> None:
        names = kernel_names(graph)
        of = f" of {', '.join(names)}" if names else ""
        self._recording.catalogue.not_covered(
            f"launches{of} in replays of a CUDA graph that was captured before the recording", EARLIER
        )

    def _safely(self, action: Callable[..., Any], *args: Any) -> Any:
        try:
            with self._recording.lock, hooks.hidden(), HiddenComputation():
                return action(*args)
        except Exception as error:
            self._recording.failsafe.end(error)
            return None
