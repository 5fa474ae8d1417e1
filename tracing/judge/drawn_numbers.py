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
from tracing.judge.fx_program import FxProgram, FxValue
from tracing.judge.no_reference import NoReference
from tracing.judge.operators import is_random, is_seed, references
from tracing.store.graph_file import FxNode

_CONVERTED = "prims::convert_element_type"


class DrawnNumbers(NamedTuple):
    """What one node of a compiled graph drew."""

    operator: str  # "prims::inductor_random", "aten::bernoulli.p"
    arguments: Sequence[Any]  # of the node: numbers, text, {"node": NAME}
    value: torch.Tensor  # [*]
    order: tuple[int, ...] | None  # the permutation that follows, as for a tensor that is not contiguous
    users: tuple[str, ...]  # the operators that read them


@dataclass(frozen=True, slots=True)
class GraphDraws:
    """The draws of one call of a compiled graph."""

    program: FxProgram  # the graph as Inductor received it
    sources: Mapping[FxValue, Content | int | float]  # sizes, seeds, and numbers that operators drew
    generated: bool  # the numbers of kernels follow from the seeds: see random_numbers.py

    @staticmethod
    def nodes(program: FxProgram) -> list[FxNode]:
        """The nodes of a graph that draw numbers, in order."""
        return [one for one in program.graph.nodes if is_random(one) and not is_seed(one)]

    def numbers(self, contents: Contents) -> list[DrawnNumbers]:
        """What was drawn, in order; raises NoReference if the run does not say."""
        load, nodes = contents.tensor, self.nodes(self.program)
        given = {value: load(one) if isinstance(one, Content) else one for value, one in self.sources.items()}
        targets = [FxValue(one.name, 0) for one in nodes]
        plan = self.program.plan(targets, given)
        if plan.draws and not (plan.generated and self.generated):
            raise NoReference("random numbers that are not known")
        values = self.program.run(plan, given)
        return [
            self._drawn(node, self._arguments(node, given), values[target])
            for node, target in zip(nodes, targets, strict=True)
        ]

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
