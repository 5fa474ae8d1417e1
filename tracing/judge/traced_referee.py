"""Judges the results of calls of the graphs that Dynamo traced, by these graphs.

Decompositions, pre-grad and joint passes change a graph before Inductor lowers it. If one of them is wrong,
each launch is right by the graph that Inductor received; only the graph that Dynamo traced shows the fault.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch

from tracing.analyze.judge.judgement import BEFORE_INDUCTOR, SharedResult, TracedOff, WrongElements
from tracing.judge.contents import Contents
from tracing.judge.float64 import DOES_NOT_RUN, undecided, until_clear, wrong_elements
from tracing.judge.fx_program import FxValue
from tracing.judge.no_reference import FAILURES, NoReference
from tracing.judge.traced_program import ExecutedGraph, TracedProgram
from tracing.model import SharedBytes, TracedCall, TracedGraph
from tracing.numerics.default_dtype import with_default_dtype
from tracing.numerics.reference import Expected, reference
from tracing.numerics.verdict import Judged, judge
from tracing.store import Run
from tracing.store.graph_file import PythonLine, read_graph
from tracing.upstream.torch.float32_precision import with_float32_precision


class TracedFindings(NamedTuple):
    """What is off in one call, and why results of it could not be judged."""

    off: tuple[TracedOff | SharedResult, ...]
    not_covered: tuple[str, ...]


class _Results(NamedTuple):
    by_name: dict[str, Any]  # "output 0", "input 1 afterwards"
    shared: Sequence[SharedBytes]


class TracedReferee:
    """Judges calls of the graphs that Dynamo traced in one process of a run."""

    def __init__(self, run: Run, process: str, contents: Contents) -> None:
        self._run, self._contents = run, contents
        self._graphs = {one.id: one for one in run.view(process, TracedGraph, TracedGraph)}
        self._programs: dict[int, TracedProgram] = {}

    def judge(self, call: TracedCall, graph: int, unjudged: Sequence[str]) -> TracedFindings:
        """Judge one call.

        graph    -- the compiled graph that it calls
        unjudged -- launches of it that have no reference
        """
        try:
            if call.graph not in self._graphs:
                raise NoReference("a graph that was not recorded")
            program = self._program(call.graph)
            return _JudgedCall(call, graph, program, self._contents, unjudged).findings()
        except NoReference as reason:
            what = f"results of graph {graph} by Dynamo's graph"
            return TracedFindings((), (f"{what}: no reference, because it depends on {reason}",))

    def _program(self, graph: int) -> TracedProgram:
        if graph not in self._programs:
            nodes = read_graph(self._run, self._graphs[graph].nodes)
            virtual = self._run.info.environment.virtual
            with _refused():
                self._programs[graph] = TracedProgram(nodes, self._contents.device, virtual=virtual)
        return self._programs[graph]


class _JudgedCall:
    def __init__(
        self,
        call: TracedCall,
        graph: int,
        program: TracedProgram,
        contents: Contents,
        unjudged: Sequence[str],
    ) -> None:
        self._call, self._graph, self._program, self._contents = call, graph, program, contents
        self._without_reference = tuple(unjudged)
        self._not_covered: list[str] = []

    def findings(self) -> TracedFindings:
        with _as_recorded(self._call, self._contents.device):
            made = self._results(self._executed())
            off: list[TracedOff | SharedResult] = [*self._off(made), *self._shared(made)]
        return TracedFindings(tuple(off), tuple(self._not_covered))

    @functools.cached_property
    def _inputs(self) -> list[Any]:
        values: list[Any] = []
        for position, node in enumerate(self._program.inputs):
            content = self._contents.of_graph(self._call.index, position, "input")
            if content is not None:
                values.append(self._contents.tensor(content))
            elif position in self._call.numbers:
                values.append(self._call.numbers[position])
            else:
                raise NoReference(f"the graph's input {node.name}, whose content was not recorded")
        return values

    def _executed(self) -> ExecutedGraph:
        with _refused(), torch.no_grad():
            return self._program.run(self._inputs, self._call.overlapping)

    def _results(self, made: ExecutedGraph) -> _Results:
        outputs = {f"output {i}": one for i, one in enumerate(made.results)}
        positions = sorted({*made.changed, *self._left})
        changed = {f"input {i} afterwards": made.inputs[i] for i in positions}
        return _Results(outputs | changed, made.shared)

    @functools.cached_property
    def _left(self) -> list[int]:
        # the inputs that the program may have overwritten: their contents were recorded afterwards, too
        call, positions = self._call.index, range(len(self._program.inputs))
        return [i for i in positions if self._contents.of_graph(call, i, "afterwards") is not None]

    def _actual(self, names: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        # what the program had: of an input that compiled code does not overwrite, what it read
        actual = {}
        for name, own in names.items():
            side, _, rest = name.partition(" ")
            position = int(rest.partition(" ")[0])
            kind = "output" if side == "output" else "afterwards"
            content = self._contents.of_graph(self._call.index, position, kind)
            if content is None and side == "input":
                content = self._contents.of_graph(self._call.index, position, "input")
            if content is not None and isinstance(own, torch.Tensor):
                actual[name] = self._contents.tensor(content)
        return actual

    def _off(self, made: _Results) -> Iterator[TracedOff]:
        actual = self._actual(made.by_name)
        for name, tensor in [*actual.items()]:
            own = made.by_name[name]
            if (own.dtype, own.shape) != (tensor.dtype, tensor.shape):
                yield self._of_other_form(name, actual.pop(name), own)
        verdicts = until_clear(actual, self._expected, self._verdicts)
        for name, verdict in verdicts.items():
            why = ", ".join(verdict.missing) if verdict.verdict == "no reference" else undecided(verdict)
            if why:
                self._unjudged(name, why)
            elif verdict.verdict == "compiled is off":
                node = self._node(name)
                wrong = wrong_elements(name, name, FxValue(node, 0), verdict, actual[name].numel())
                yield self._finding(wrong)

    def _expected(self, samples: int) -> dict[str, Expected]:
        def run() -> dict[str, Any]:
            return self._results(self._program.run(self._inputs, self._call.overlapping)).by_name

        with _refused(), torch.no_grad():
            return reference(run, samples=samples)

    def _verdicts(
        self, actual: Mapping[str, torch.Tensor], expected: Mapping[str, Expected]
    ) -> dict[str, Judged]:
        verdicts = {}
        for name, tensor in actual.items():
            one = expected.get(name)
            if one is None or one.own is None or one.own.shape != tensor.shape:
                self._unjudged(name, "what changes from one execution to the next")
            elif one.drawn:
                self._unjudged(name, "random numbers")
            else:
                verdicts[name] = judge(tensor, one.own, one)
        return verdicts

    def _of_other_form(self, name: str, actual: torch.Tensor, own: torch.Tensor) -> TracedOff:
        forms = [f"{str(one.dtype).removeprefix('torch.')} {[*one.shape]}" for one in (actual, own)]
        node, count = self._node(name), actual.numel()
        wrong = WrongElements(name, name, node, count, count, (), 0.0, 0.0, 0.0, 0.0, ", not ".join(forms))
        return self._finding(wrong)

    def _finding(self, wrong: WrongElements) -> TracedOff:
        return TracedOff(self._graph, wrong, self._without_reference, self._lines(wrong.node))

    def _unjudged(self, name: str, reason: str) -> None:
        what = f"{name} of graph {self._graph} by Dynamo's graph"
        text = f"{what}: no reference, because it depends on {reason}"
        if text not in self._not_covered:
            self._not_covered.append(text)

    def _shared(self, made: _Results) -> Iterator[SharedResult]:
        expected = {(one.output, one.side, one.other) for one in made.shared}
        if not self._program.layouts_known:
            return
        for one in self._call.shared:
            if (one.output, one.side, one.other) in expected:
                continue
            name, other = f"output {one.output}", f"{one.side} {one.other}"
            node = self._node(name)
            yield SharedResult(
                self._graph, name, node, other, self._node(other), BEFORE_INDUCTOR, self._lines(node)
            )

    def _node(self, name: str) -> str:
        side, _, rest = name.partition(" ")
        position = int(rest.partition(" ")[0])
        if side == "input":
            names = [one.name for one in self._program.inputs]
        else:
            names = [
                str(one.get("node", "")) if isinstance(one, Mapping) else "" for one in self._program.outputs
            ]
        return names[position] if position < len(names) else ""

    def _lines(self, node: str) -> tuple[PythonLine, ...]:
        known = next((one for one in self._program.graph.nodes if one.name == node), None)
        line = self._program.graph.line_of(known) if known is not None else None
        return (line,) if line is not None else ()


@contextmanager
def _refused() -> Iterator[None]:
    # the run may be damaged, or a stranger's: a node may name no other one
    try:
        yield
    except (*FAILURES, KeyError, AttributeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NoReference(f"{DOES_NOT_RUN}: {first}") from None


@contextmanager
def _as_recorded(call: TracedCall, device: torch.device) -> Iterator[None]:
    # the settings around the call; raises NoReference if this device has not its autocast
    if "cuda" in call.autocast and device.type != "cuda":
        raise NoReference("autocast of cuda, which is not the device of this judgement")
    with ExitStack() as stack:
        stack.enter_context(device)
        stack.enter_context(with_float32_precision(call.precision))
        with _refused():
            stack.enter_context(with_default_dtype(call.default_dtype))
            for kind, dtype in call.autocast.items():
                stack.enter_context(torch.autocast(kind, getattr(torch, dtype)))
        yield
