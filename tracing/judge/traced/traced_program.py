"""Executes a graph that Dynamo traced, as the program would in eager, on copies of its inputs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch

from tracing.judge.fx import higher_order
from tracing.judge.fx.autograd_function import autograd_function
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import executes_graphs, references, resolved
from tracing.judge.fx.recorded_values import clone, constant, decoded, is_dense, strided
from tracing.judge.fx.tensor_hook import register_hook
from tracing.judge.traced.backward_formulas import FUNCTION
from tracing.judge.traced.drawn_numbers import DrawnNumbers
from tracing.judge.traced.given_numbers import GivenNumbers
from tracing.model import OverlappingInput, SharedBytes
from tracing.numerics.autocast import autocast_restored
from tracing.record.graphs.shared_memory import passed_inputs, shared_memory
from tracing.store.graph_file import FxGraph, FxNode
from tracing.upstream.torch.functorch_levels import levels_restored
from tracing.upstream.torch.tensor_subclasses import storage_key
from tracing.upstream.torch.traced_dropout import TRACED_DROPOUT, dropout_as_traced
from tracing.upstream.torch.traced_functions import differentiates, traced_function, traced_method

_UNWRITTEN = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
_OF_STORAGE = ("as_strided", "as_strided_")
_ATTENTION = ".scaled_dot_product_attention"
Receive: TypeAlias = Callable[[FxNode, Any], None]
_FILLED = itertools.count(1)
_HIGHER = "torch.ops.higher_order."
_CHECKPOINT = f"{_HIGHER}tag_activation_checkpoint"
_HOOK = f"{_HIGHER}register_hook"


class ExecutedGraph(NamedTuple):
    """What a graph leaves."""

    results: list[Any]  # its outputs
    inputs: list[Any]  # as it leaves them
    changed: tuple[int, ...]  # positions of the inputs that it overwrites
    shared: Sequence[SharedBytes]


class TracedProgram:
    """A graph that Dynamo traced."""

    def __init__(self, graph: FxGraph, device: torch.device, *, virtual: bool = False) -> None:
        """device -- where it is executed, whatever device the graph names
        virtual -- it was recorded on a virtual GPU, whose autocast is that of the CPU

        Raises NoReference if it calls a function that this process does not know.
        """
        self.graph, self._device, self._virtual = graph, device, virtual
        self.inputs = graph.inputs
        self._functions = {node.name: self._function(node) for node in graph.nodes if "call" in node.op}
        self._reaches = any(node.target.rpartition(".")[2] in _OF_STORAGE for node in graph.nodes)
        self._incomplete: set[int] = set()  # storages of inputs that have more than the elements of the input
        self._last: dict[str, list[str]] = {}  # the values that no node after this one reads
        users = {name: node.name for node in graph.nodes for name in references([node.args, node.kwargs])}
        for name, user in users.items():
            self._last.setdefault(user, []).append(name)

    @property
    def outputs(self) -> list[Any]:
        """The results, in order: {"node": NAME}, numbers, None."""
        last = self.graph.nodes[-1]
        results = last.args[0] if last.op == "output" and last.args else []
        return list(results) if isinstance(results, list) else [results]

    @property
    def output_nodes(self) -> list[FxNode | None]:
        """The nodes of the results, in order; None: of a number, or of None."""
        nodes = {node.name: node for node in self.graph.nodes}
        return [nodes.get(one.get("node", "")) if isinstance(one, Mapping) else None for one in self.outputs]

    @property
    def layouts_known(self) -> bool:
        """True if each input is executed with the strides that it had in the program."""
        values = [
            node.value for node in self.inputs if isinstance(node.value, Mapping) and "stride" in node.value
        ]
        return all(type(one) is int and one > 0 for value in values for one in value["stride"])

    def run(
        self,
        inputs: Sequence[Any],
        overlapping: Mapping[int, OverlappingInput],
        drawn: Sequence[DrawnNumbers] | None = None,
        receive: Receive | None = None,
    ) -> ExecutedGraph:
        """Execute the graph on copies of its inputs.

        overlapping -- as of `TracedCall`: the copies of these share memory, too
        drawn       -- the random numbers that it draws, in order; None: others in each execution
        receive     -- called with each node that calls a function, and its result; later ones may change it

        Raises OtherNumbers if it draws others than these.
        """
        own = self._copies(inputs, overlapping)
        versions = [one._version if isinstance(one, torch.Tensor) else 0 for one in own]
        passed = passed_inputs(own)
        with torch.set_grad_enabled(_differentiates(self.graph)):
            results = self._drawing(drawn, own, receive)
        changed = tuple(
            i for i, one in enumerate(own) if isinstance(one, torch.Tensor) and one._version != versions[i]
        )
        return ExecutedGraph(results, own, changed, shared_memory(results, passed))

    def gradients(
        self,
        inputs: Sequence[Any],
        overlapping: Mapping[int, OverlappingInput],
        entered: Mapping[int, torch.Tensor],
        wanted: Sequence[int],
        overwritten: Collection[int],
        drawn: Sequence[DrawnNumbers] | None = None,
    ) -> list[torch.Tensor]:
        """The gradients of some inputs, by autograd; zeros where no result depends on one.

        entered     -- the gradients of results, by position
        wanted      -- positions of the inputs
        overwritten -- inputs that the graph may overwrite
        drawn       -- as of `run`

        Raises NoReference if it enters inference mode, in which torch follows no gradients.
        """
        if any("inference_mode" in node.target for node in self.graph.nodes):
            raise NoReference("inference mode")
        own = self._copies(inputs, overlapping)
        leaves = [own[i].requires_grad_() for i in wanted]
        for i in {*wanted} & {*overwritten}:
            own[i] = own[i].clone()  # autograd refuses writes to a leaf
        with torch.enable_grad():
            results = self._drawing(drawn, own)
        pairs = [(results[i], one) for i, one in entered.items() if results[i].requires_grad]
        if not (pairs and leaves):
            return [torch.zeros_like(one) for one in leaves]
        made = torch.autograd.grad(
            [one for one, _ in pairs], leaves, [one for _, one in pairs], allow_unused=True
        )
        either = zip(made, leaves, strict=True)
        return [one if one is not None else torch.zeros_like(leaf) for one, leaf in either]

    def readers(self, node: str) -> list[int]:
        """The positions of the nodes that read the value of another one, in the order of the graph."""
        nodes = enumerate(self.graph.nodes)
        return [i for i, one in nodes if node in references([one.args, one.kwargs])]

    def _copies(self, inputs: Sequence[Any], overlapping: Mapping[int, OverlappingInput]) -> list[Any]:
        pairs = zip(inputs, self.inputs, strict=True)
        own = [
            strided(clone(one), node.value) if isinstance(one, torch.Tensor) else one for one, node in pairs
        ]
        for i, view in _views(inputs, overlapping):
            own[i] = view
        return own

    def _drawing(
        self, drawn: Sequence[DrawnNumbers] | None, inputs: Sequence[Any], receive: Receive | None = None
    ) -> list[Any]:
        with levels_restored(), autocast_restored(), dropout_as_traced():
            if drawn is None:
                return self._called(*inputs, receive=receive)
            with GivenNumbers(drawn) as numbers:
                results = self._called(*inputs, receive=receive)
            numbers.require_all_drawn()
            return results

    def _called(self, *inputs: Any, receive: Receive | None = None) -> list[Any]:
        pairs = [*zip(self.inputs, inputs, strict=True)]
        if self._reaches:
            self._incomplete = {
                storage_key(one.untyped_storage()) for node, one in pairs if _lies_in_more(one, node)
            }
        values: dict[str, Any] = {node.name: one for node, one in pairs}
        for node in self.graph.nodes:
            if node.op == "get_attr" and node.name not in values:
                values[node.name] = self._attribute(node)
            elif node.name in self._functions:
                values[node.name] = self._executed(node, values)
                if receive is not None:
                    receive(node, values[node.name])
            if node.op != "output":
                for name in self._last.get(node.name, ()):
                    del values[name]
        return [decoded(one, values, self._device) for one in self.outputs]

    def _attribute(self, node: FxNode) -> Any:
        if node.graph is not None:
            return functools.partial(self._call_inner, node.graph)
        assert node.constant is not None
        return constant(node.constant, self._device)

    def _call_inner(self, graph: FxGraph, *inputs: Any) -> list[Any]:
        # a graph that is not called, as the backward of an autograd.Function, may contain any function
        return TracedProgram(graph, self._device, virtual=self._virtual)._called(*inputs)

    def _executed(self, node: FxNode, values: Mapping[str, Any]) -> Any:
        args = [self._on_device(decoded(one, values, self._device)) for one in node.args]
        keywords = (node.kwargs or {}).get("mapping", [])
        kwargs = {name: self._on_device(decoded(one, values, self._device)) for name, one in keywords}
        result = self._functions[node.name](*args, **kwargs)
        # a kernel of attention chooses the order of its result in memory, and dropout draws in this order
        return strided(result, node.value) if node.target.endswith(_ATTENTION) else result

    def _on_device(self, argument: Any) -> Any:
        named = isinstance(argument, str) and argument.partition(":")[0] in ("cpu", "cuda")
        return self._device if named else argument

    def _function(self, node: FxNode) -> Callable[..., Any]:
        name = node.target.rpartition(".")[2]
        if name in _OF_STORAGE[1:]:
            raise NoReference("the storage of an input")
        if node.target in TRACED_DROPOUT:
            return TRACED_DROPOUT[node.target]
        if node.op == "call_method":
            if name in ("cuda", "cpu"):
                return lambda tensor, *args, **kwargs: tensor.to(self._device)
            function = traced_method(name)
        elif "::" in node.target:
            function = resolved(node)
        elif node.target == _CHECKPOINT:
            return lambda graph, *args, **kwargs: graph(*args)
        elif node.target == FUNCTION:
            return autograd_function
        elif node.target == _HOOK:
            return register_hook
        elif executes_graphs(node):
            function = higher_order.FUNCTIONS.get(node.target.removeprefix(_HIGHER))
        elif name == "_enter_autocast":
            function = self._enter_autocast(node)
        else:
            function = traced_function(node.target) if node.op == "call_function" else None
        if name in _OF_STORAGE and function is not None:
            return functools.partial(self._of_storage, function)
        if name in _UNWRITTEN and function is not None:
            return functools.partial(_filled, function)
        if function is None:
            raise NoReference(f"{name}, which judge does not execute")
        return function

    def _of_storage(
        self, function: Callable[..., Any], tensor: torch.Tensor, *rest: Any, **named: Any
    ) -> Any:
        # of an input, only its own elements were kept
        if storage_key(tensor.untyped_storage()) in self._incomplete:
            raise NoReference("the storage of an input")
        return function(tensor, *rest, **named)

    def _enter_autocast(self, node: FxNode) -> Callable[..., Any]:
        # each type of device has operators of its own that are less precise then
        enter = traced_function(node.target)
        assert enter is not None
        if node.args[0] == self._device.type:
            return lambda _device, *args: enter(self._device.type, *args)
        if not self._virtual:
            raise NoReference(f"autocast of {node.args[0]}, which is not the device of this judgement")
        return lambda _device, dtype, *args: enter("cpu", dtype or torch.get_autocast_dtype("cuda"), *args)


def _lies_in_more(value: Any, node: FxNode) -> bool:
    # whether the storage of an input may have had elements that are none of the input
    if not isinstance(value, torch.Tensor):
        return False
    known = isinstance(node.value, Mapping) and not node.value.get("offset") and is_dense(node.value)
    return not known or value.untyped_storage().nbytes() != value.nbytes


def _differentiates(graph: FxGraph) -> bool:
    # without grad mode, the gradients that it computes would be zeros
    inner = [one.graph for one in graph.nodes if one.graph is not None]
    return any(differentiates(one.target) for one in graph.nodes) or any(map(_differentiates, inner))


def _filled(allocate: Callable[..., torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
    # what depends on unwritten memory is another one in each execution
    return allocate(*args, **kwargs).fill_(next(_FILLED) % 64)


def _views(
    inputs: Sequence[torch.Tensor], overlapping: Mapping[int, OverlappingInput]
) -> Iterator[tuple[int, torch.Tensor]]:
    # the inputs that overlap, by position, as views of new memory for each group
    groups: dict[int, list[int]] = {}
    for i, one in overlapping.items():
        groups.setdefault(one.group, []).append(i)
    for members in groups.values():
        dtype, size = inputs[members[0]].dtype, inputs[members[0]].element_size()
        if any(inputs[i].dtype != dtype or overlapping[i].offset % size for i in members):
            raise NoReference("inputs of several dtypes that share memory")
        last = max(overlapping[i].offset // size + _extent(inputs[i].shape, overlapping[i]) for i in members)
        memory = torch.zeros(last, dtype=dtype, device=inputs[members[0]].device)
        for i in members:
            one = overlapping[i]
            view = memory.as_strided(inputs[i].shape, one.stride, one.offset // size)
            once = tuple(slice(None if stride else 1) for stride in one.stride)  # of what was expanded
            view[once].copy_(inputs[i][once])
            yield i, view


def _extent(shape: Sequence[int], one: OverlappingInput) -> int:
    # in elements
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, one.stride, strict=True))
