"""Records the backward of calls of the graphs that Dynamo traced: the gradients of results and of inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from tracing.model import TracedBackward
from tracing.record.graphs.call_tensors import CallTensors
from tracing.record.recording import Recording
from tracing.upstream.torch.compiled_backward import gradients_needed, is_compiled_backward

Edges = Mapping[int, GradientEdge]  # where the gradients of some tensors flow to, by position
_VIEWS = 8  # of a view, at most
_FOLLOWED = "tracing_followed"  # attribute of a node: what each recording follows


@dataclass(frozen=True, slots=True)
class _Followed:
    call: int
    results: Mapping[int, int]  # positions of results of the call, by that of their gradient
    inputs: Sequence[int | None]  # positions of inputs of the call; None: no gradient, or of no single one
    others: bool  # as of TracedBackward


@dataclass(frozen=True, slots=True)
class _Begun:
    followed: _Followed
    index: int
    entered: tuple[int, ...]  # as of TracedBackward
    views: bool


class TracedBackwards:
    """Records the backwards of the calls that it follows."""

    def __init__(
        self, recording: Recording, tensors: CallTensors, calls: Iterator[int], active: Callable[[], bool]
    ) -> None:
        """calls -- the numbers of calls of graphs in this process
        active -- False: nothing is recorded now
        """
        self._recording, self._tensors, self._calls, self._active = recording, tensors, calls, active

    def follow(self, call: int, inputs: Edges, results: Sequence[Any]) -> None:
        """Record each backward of a call.

        inputs -- the edges of its inputs before the call
        """
        earlier = {edge.node for edge in inputs.values()}  # a result may be an input
        nodes: dict[Any, dict[int, int]] = {}
        for position, edge in gradient_edges(results).items():
            node = _compiled(edge.node, earlier)
            if node is not None:
                known = nodes.setdefault(node, {})
                if node is edge.node:
                    known.setdefault(edge.output_nr, position)
        for node, positions in nodes.items():
            sources = [_position(one, inputs) for one in node.next_functions if one[0] is not None]
            needed = gradients_needed(node)
            if sum(needed) != len(sources):
                continue
            left = iter(sources)
            arguments = [next(left) if need else None for need in needed]
            followed = getattr(node, _FOLLOWED, {})  # recordings may be nested
            one = _Followed(call, positions, arguments, None in sources)
            setattr(node, _FOLLOWED, {**followed, self: one})

    def began(self, node: Any, gradients: Sequence[torch.Tensor | None]) -> _Begun | None:
        followed = getattr(node, _FOLLOWED, {}).get(self)
        if followed is None or not self._active():
            return None
        with self._recording.lock:
            index = next(self._calls)
        entered = {followed.results.get(i): one for i, one in enumerate(gradients) if one is not None}
        known = {i: one for i, one in entered.items() if i is not None}
        self._tensors.keep(index, "input", known)
        return _Begun(followed, index, tuple(known), None in entered)

    def ended(self, token: _Begun | None, gradients: Sequence[torch.Tensor | None]) -> None:
        if token is None:
            return
        pairs = [*zip(token.followed.inputs, gradients, strict=False)]
        known = {i: one for i, one in pairs if i is not None}
        self._tensors.keep(token.index, "output", known)
        given = tuple(i for i, one in known.items() if one is not None)
        absent = tuple(i for i, one in known.items() if one is None)
        with self._recording.lock:
            stop, thread = next(self._calls), self._recording.thread.number
            self._recording.writer.append(
                TracedBackward(
                    token.index,
                    stop,
                    token.followed.call,
                    thread,
                    token.entered,
                    given,
                    absent,
                    views=token.views,
                    others=token.followed.others,
                )
            )


def gradient_edges(values: Sequence[Any]) -> Edges:
    """Where the gradients of those values flow to that are tensors and have one, by position.

    None without autograd, where the node of a tensor may be one that torch cannot make.
    """
    if not torch.is_grad_enabled():
        return {}
    tensors = ((i, one) for i, one in enumerate(values) if isinstance(one, torch.Tensor))
    return {i: get_gradient_edge(one) for i, one in tensors if one.requires_grad}


def _compiled(node: Node | None, earlier: Collection[Node]) -> Node | None:
    # the compiled backward that the gradient of a result, or of what it is a view of, flows to
    for _ in range(_VIEWS):
        if node is None or node in earlier:
            return None
        if is_compiled_backward(node):
            return node
        node = next((one for one, _ in node.next_functions if one is not None), None)
    return None


def _position(edge: tuple[Node, int], inputs: Edges) -> int | None:
    # the input whose gradient flows along an edge; None: none, or several, as with views
    node, number = edge
    positions = [i for i, one in inputs.items() if one.node is node and one.output_nr == number]
    return positions[0] if len(positions) == 1 else None
