"""Judges tensors that a program had by those that a graph of Dynamo makes in eager and in float64."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from tracing.analyze.judge.findings import SharedResult, TracedOff, WrongElements
from tracing.analyze.judge.judgement import BY_DYNAMO
from tracing.judge.contents import Content, Contents
from tracing.judge.fx.allowed_tf32 import allowed_tf32
from tracing.judge.fx.float64 import DOES_NOT_RUN, undecided, until_clear, wrong_elements
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.no_reference import FAILURES, NoReference
from tracing.judge.traced.drawn_numbers import DrawnNumbers, GraphDraws
from tracing.judge.traced.given_numbers import OtherNumbers
from tracing.judge.traced.traced_program import TracedProgram
from tracing.model import TracedCall
from tracing.numerics.default_dtype import with_default_dtype
from tracing.numerics.reference import UNREPEATABLE, Expected, Reference
from tracing.numerics.verdict import Judged, judge
from tracing.store.graph_file import FxNode, PythonLine
from tracing.upstream.torch.float32_precision import with_float32_precision

_RANDOM = "random numbers; without them, as with a dropout of 0, it is judged"
_CHANGES = "what changes from one execution to the next, as unwritten memory"


class JudgedResults(ABC):
    """The results of one execution of a graph that Dynamo traced: of a call, or of its backward."""

    def __init__(
        self,
        call: TracedCall,
        graph: int,
        program: TracedProgram,
        contents: Contents,
        unjudged: Sequence[str],
        draws: Sequence[GraphDraws] = (),
    ) -> None:
        """graph -- the compiled graph that has the results

        unjudged -- launches of it that have no reference
        draws    -- of the call
        """
        self._call, self._graph, self._program, self._contents = call, graph, program, contents
        self._draws = draws
        self._underived = ""  # an operator whose result does not follow from the numbers that were drawn
        self._without_reference = tuple(unjudged)
        self.not_covered: list[str] = []
        self.right: list[str] = []  # names of the results that were judged, and are right

    def findings(self) -> list[TracedOff | SharedResult]:
        """What is off; raises NoReference if the graph cannot be executed."""
        with as_recorded(self._call, self._contents.device):
            try:
                return [*self._findings()]
            except OtherNumbers as numbers:  # without them, results that depend on none are judged
                self._drawn, self._underived = None, numbers.operator
                self.not_covered.clear()
                self.right.clear()
                return [*self._findings()]

    @abstractmethod
    def _findings(self) -> Iterator[TracedOff | SharedResult]: ...

    @abstractmethod
    def _made(self) -> dict[str, Any]:
        """Execute the graph; its results by name, "output 0"."""

    @abstractmethod
    def content(self, name: str) -> Content | None:
        """What the program had of a result; None: not kept."""

    @abstractmethod
    def _node(self, name: str) -> FxNode | None:
        """The node of Dynamo's graph that stands for a result."""

    @abstractmethod
    def _lines(self, name: str) -> tuple[PythonLine, ...]:
        """The lines of the program that a result belongs to."""

    @functools.cached_property
    def _drawn(self) -> list[DrawnNumbers] | None:
        try:
            return [one for graph in self._draws for one in graph.numbers(self._contents)]
        except NoReference:
            return None

    @property
    def _random(self) -> str:
        if not self._underived:
            return _RANDOM
        own = f"the random numbers of {self._underived}"
        return f"{own}, which judge does not compute from what compiled code drew"

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

    @functools.cached_property
    def _left(self) -> list[int]:
        # the inputs that the program may have overwritten: their contents were recorded afterwards, too
        call, positions = self._call.index, range(len(self._program.inputs))
        return [i for i in positions if self._contents.of_graph(call, i, "afterwards") is not None]

    def _off(self, made: Mapping[str, Any], actual: Mapping[str, torch.Tensor]) -> Iterator[TracedOff]:
        # made, actual -- what the graph makes in eager, and what the program had
        alike = {}
        for name, tensor in actual.items():
            own = made[name]
            if (own.dtype, own.shape) == (tensor.dtype, tensor.shape):
                alike[name] = tensor
            else:
                yield self._of_other_form(name, tensor, own)
        verdicts = until_clear(alike, self._expected, self._verdicts)
        for name, verdict in verdicts.items():
            missing = verdict.missing if verdict.verdict == "no reference" else ()
            why = _CHANGES if UNREPEATABLE in missing else ", ".join(missing) or undecided(verdict)
            if why:
                self._unjudged(name, why)
            elif verdict.verdict == "compiled is off":
                value = FxValue(self._node_name(name), 0)
                yield self._finding(wrong_elements(name, name, value, verdict, alike[name].numel()))
            else:
                self.right.append(name)

    def _expected(self, samples: int) -> dict[str, Expected]:
        with refused():
            return self._reference.expected(samples)

    @functools.cached_property
    def _reference(self) -> Reference:
        return Reference(self._made, tf32=self._tf32)

    @property
    def _tf32(self) -> Collection[str]:
        return allowed_tf32(self._contents.run.info.environment, self._call)

    def _verdicts(
        self, actual: Mapping[str, torch.Tensor], expected: Mapping[str, Expected]
    ) -> dict[str, Judged]:
        verdicts = {}
        for name, tensor in actual.items():
            one = expected.get(name)
            if one is None or one.own is None or one.own.shape != tensor.shape:
                self._unjudged(name, _CHANGES)
            elif one.drawn:
                self._unjudged(name, self._random)
            else:
                verdicts[name] = judge(tensor, one.own, one)
        return verdicts

    def _of_other_form(self, name: str, actual: torch.Tensor, own: torch.Tensor) -> TracedOff:
        forms = [f"{str(one.dtype).removeprefix('torch.')} {[*one.shape]}" for one in (actual, own)]
        node, count = self._node_name(name), actual.numel()
        wrong = WrongElements(name, name, node, count, count, (), 0.0, 0.0, 0.0, 0.0, ", not ".join(forms))
        return self._finding(wrong)

    def _finding(self, wrong: WrongElements) -> TracedOff:
        return TracedOff(self._graph, wrong, self._without_reference, self._lines(wrong.name))

    def _unjudged(self, name: str, reason: str) -> None:
        what = f"{name} of graph {self._graph} {BY_DYNAMO}"
        text = f"{what}: no reference, because it depends on {reason}"
        if text not in self.not_covered:
            self.not_covered.append(text)

    def _node_name(self, name: str) -> str:
        node = self._node(name)
        return node.name if node is not None else ""


@contextmanager
def refused() -> Iterator[None]:
    """Raise NoReference where a graph cannot be executed.

    The run may be damaged, or a stranger's: a node may name no other one.
    """
    try:
        yield
    except (*FAILURES, KeyError, AttributeError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NoReference(f"{DOES_NOT_RUN}: {first}") from None


@contextmanager
def as_recorded(call: TracedCall, device: torch.device) -> Iterator[None]:
    """The settings around a call; raises NoReference if this device has not its autocast."""
    if "cuda" in call.autocast and device.type != "cuda":
        raise NoReference("autocast of cuda, which is not the device of this judgement")
    with ExitStack() as stack:
        stack.enter_context(device)
        stack.enter_context(with_float32_precision(call.precision, call.tf32))
        with refused():
            stack.enter_context(with_default_dtype(call.default_dtype))
            for kind, dtype in call.autocast.items():
                stack.enter_context(torch.autocast(kind, getattr(torch, dtype)))
        yield
