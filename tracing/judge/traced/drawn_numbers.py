"""The random numbers that a call of a compiled graph drew, in the order of the program.

Inductor's kernels draw other numbers than eager. AOTAutograd keeps the order in which a program draws, so the
graph that Dynamo traced is judged with the numbers of the graph that was compiled from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tracing.judge.contents import Content, Contents
from tracing.judge.fx.fx_program import FxProgram
from tracing.judge.fx.fx_values import FxValue
from tracing.judge.fx.no_reference import NoReference
from tracing.judge.fx.operators import is_random, is_seed, references, resolved
from tracing.store.graph_file import FxNode
from tracing.upstream.torch.fused_attention import (
    DroppedAttention,
    GeneratorState,
    kept_weights,
    state_results,
)
from tracing.upstream.torch.operator_schemas import named_arguments

_CONVERTED = "prims::convert_element_type"


class DrawnNumbers(NamedTuple):
    """What one node of a compiled graph drew."""

    operator: str  # "prims::inductor_random", "aten::bernoulli.p"
    arguments: Sequence[Any]  # of the node: numbers, text, {"node": NAME}
    value: torch.Tensor  # [*]; of attention bool, the weights that it keeps
    order: tuple[int, ...] | None  # the permutation that follows, as for a tensor that is not contiguous
    users: tuple[str, ...]  # the operators that read them


@dataclass(frozen=True, slots=True)
class GraphDraws:
    """The draws of one call of a compiled graph."""

    program: FxProgram  # the graph as Inductor received it
    # inputs, sizes, seeds, states of generators, and numbers that operators drew
    sources: Mapping[FxValue, Content | int | float | GeneratorState]
    generated: bool  # the numbers of kernels follow from the seeds: see random_numbers.py

    @staticmethod
    def nodes(program: FxProgram) -> list[FxNode]:
        """The nodes of a graph that draw numbers, in order."""
        return [one for one in program.graph.nodes if is_random(one) and not is_seed(one)]

    def numbers(self, contents: Contents) -> list[DrawnNumbers]:
        """What was drawn, in order; raises NoReference if the run does not say."""
        program, nodes = self.program, self.nodes(self.program)
        targets = [one for node in nodes for one in self._targets(node)]
        plan = program.plan(targets, self.sources)
        if plan.draws and not (plan.generated and self.generated):
            raise NoReference("random numbers that are not known")
        parts = [program.nodes[name] for name in plan.nodes]
        read = {name for one in parts for name in references([one.args, one.kwargs])}
        read |= {name for names in program.states.values() for name in names} | {one.node for one in targets}
        given = {
            value: contents.tensor(one) if isinstance(one, Content) else one
            for value, one in self.sources.items()
            if value.node in read or not isinstance(one, Content)
        }
        values = program.run(plan, given)
        return [
            self._dropped(node, given, values, contents.device)
            if self._attends(node)
            else self._drawn(node, self._arguments(node, given), values[FxValue(node.name, 0)])
            for node in nodes
        ]

    def _targets(self, node: FxNode) -> list[FxValue]:
        # the values that say what a node drew
        if not self._attends(node):
            return [FxValue(node.name, 0)]
        sized = [one for one in self._attended(node) if self._sizes(one) is None]
        return [self.program.value(one, self.program.order[node.name]) for one in sized]

    def _attends(self, node: FxNode) -> bool:
        # attention on a GPU does not return which weights it dropped
        return node.name in self.program.states and state_results(resolved(node)) != ()

    def _attended(self, node: FxNode) -> list[str]:
        # queries and keys of attention
        arguments = self._named(node)
        return [arguments[one]["node"] for one in ("query", "key")]

    def _named(self, node: FxNode) -> dict[str, Any]:
        return named_arguments(resolved(node), node.args, dict((node.kwargs or {}).get("mapping", [])))

    def _sizes(self, name: str) -> list[int] | None:
        # None: they are not numbers
        sizes = self.program.nodes[name].value["shape"]
        return sizes if all(isinstance(one, int) for one in sizes) else None

    def _dropped(
        self,
        node: FxNode,
        given: Mapping[FxValue, Any],
        values: Mapping[FxValue, torch.Tensor],
        device: torch.device,
    ) -> DrawnNumbers:
        # the weights that attention on a GPU keeps
        known = {value.node: one for value, one in given.items()}
        if (state := self.program.generator(node, known)) is None:
            raise NoReference("random numbers that are not known")
        computed = {value.node: [*one.shape] for value, one in values.items()}
        query, key = self._attended(node)
        queries, keys = (self._sizes(one) or computed[one] for one in (query, key))
        dtype = getattr(torch, self.program.nodes[query].value["dtype"])
        chance = self._named(node)["dropout_p"]
        attention = DroppedAttention(resolved(node), queries, keys[-2], dtype, chance)
        kept = kept_weights(attention, state, device)
        return DrawnNumbers(node.target, [chance], kept, None, ())

    def _arguments(self, node: FxNode, given: Mapping[FxValue, Any]) -> list[Any]:
        known = {value.node: one for value, one in given.items() if not isinstance(one, torch.Tensor)}
        return [known.get(one.get("node", ""), one) if isinstance(one, dict) else one for one in node.args]

    def _drawn(self, node: FxNode, arguments: list[Any], value: torch.Tensor) -> DrawnNumbers:
        users, order = self._read_by(node), None
        if len(users) == 1 and users[0].target.startswith("aten::permute"):
            users, order = self._users(users[0]), tuple(users[0].args[1])
            if [one.target for one in users] == ["aten::clone"]:
                users = self._users(users[0])
        return DrawnNumbers(node.target, arguments, value, order, tuple(one.target for one in users))

    def _read_by(self, node: FxNode) -> list[FxNode]:
        users = self._users(node)
        return self._users(users[0]) if [one.target for one in users] == [_CONVERTED] else users

    def _users(self, node: FxNode) -> list[FxNode]:
        return [one for one in self.program.graph.nodes if node.name in references([one.args, one.kwargs])]
