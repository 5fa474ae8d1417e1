"""Finds kernels that one call of a compiled graph did not launch, although another call did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.judge.findings import NotLaunched
from tracing.analyze.judge.launched_steps import LaunchedStep, made_steps
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.graph_programs import GraphPrograms
from tracing.judge.recorded_calls import RecordedCall
from tracing.model import KernelLaunch


@dataclass(slots=True)
class MissingLaunches:
    """The steps of the calls of one graph.

    Generated code calls no kernel for a size of 0, so only steps whose results have a known size count.
    """

    graph: int
    program: FxProgram  # the graph as it was lowered
    # by index of the call: of those whose launches are all recorded
    calls: Mapping[int, Sequence[LaunchedStep]]

    def of(self, call: int) -> dict[int, NotLaunched]:
        """What one call did not launch, by position of its step."""
        steps = self.calls.get(call, ())
        if not any(one.launches for one in steps):
            return {}  # whatever launched its kernels was not seen
        missing = {i: elsewhere for i, one in enumerate(steps) if (elsewhere := self._elsewhere(i, one))}
        return {i: self._finding(steps[i], launch) for i, launch in missing.items()}

    def unmatched(self, call: int) -> str:
        """The first kernel of several steps that one call did not launch for each of them; "": there is none.

        Which of its launches belongs to which step is not known then.
        """
        steps = self.calls.get(call, ())
        kernels = [one.kernel for made in steps for one in made.step.calls]
        absent = (one.kernel for one in self.of(call).values())
        return next((one for one in absent if kernels.count(one) > 1), "")

    def _elsewhere(self, position: int, made: LaunchedStep) -> KernelLaunch | None:
        # the launch of a step in another call; None: it is not missing in this one
        if made.step.kind != "kernel" or made.launches or not self._sized(made):
            return None
        others = (steps[position].launches for steps in self.calls.values())
        return next((launches[0] for launches in others if launches), None)

    def _sized(self, made: LaunchedStep) -> bool:
        values = [self.program.nodes[name].value for name in made.step.nodes if name in self.program.nodes]
        shapes = [one.get("shape") for one in values if isinstance(one, Mapping)]
        return bool(shapes) and all(
            type(size) is int and size > 0 for shape in shapes for size in shape or ()
        )

    def _finding(self, made: LaunchedStep, elsewhere: KernelLaunch) -> NotLaunched:
        steps = next(iter(self.calls.values()))
        kernels = {one.kernel for one in made.step.calls}
        alike = [one.step for one in steps if kernels & {call.kernel for call in one.step.calls}]
        nodes = tuple(dict.fromkeys(node for step in alike for node in step.nodes))
        lines = self.program.lines(nodes)
        return NotLaunched(self.graph, elsewhere.kernel_name, nodes, elsewhere.index, lines)


def missing_launches(calls: Iterable[RecordedCall], graphs: GraphPrograms) -> dict[int, MissingLaunches]:
    """The steps of each graph, by its number.

    calls -- all of one process
    """
    made: dict[int, dict[int, list[LaunchedStep]]] = {}
    for one in calls:
        if one.complete:
            steps, _ = made_steps(graphs.program(one.call.graph).schedule, one.launches)
            made.setdefault(one.call.graph, {})[one.call.index] = steps
    return {
        graph: MissingLaunches(graph, graphs.program(graph).lowered, steps) for graph, steps in made.items()
    }
