"""Which of Inductor's post-grad passes change how a node of a graph is computed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracing.analyze.graphs.graph_chains import LAST, Chain, chains
from tracing.analyze.graphs.graph_names import same_graph
from tracing.model import CompiledGraph
from tracing.store import Run

_NODE = re.compile(r"%([\w.]+)")
_TYPE = re.compile(r" : \S+(?: \S+)*$")
_WRITE = re.compile(r" = [\w.]+_\.\w+\(")  # of an operator that writes its first operand: aten.copy_.default
_VIEW = re.compile(
    r"\.(?:view|_unsafe_view|reshape|permute|t|transpose|slice|select|expand|as_strided|squeeze|unsqueeze"
    r"|diagonal|alias|detach|split|unbind)\.\w+\("
)
_POST_GRAD = "post-grad"
_UNNAMED = "a pass that torch does not name"


@dataclass(frozen=True, slots=True)
class ChangingPass:
    """A pass, and the lines of a graph that compute a node before and after it."""

    name: str  # as torch's observer names it, "post_grad_custom_post_pass"
    node: str  # whose computation it changes; "": it changes the graph
    before: tuple[str, ...]
    after: tuple[str, ...]


def changing_passes(run: Run, graph: CompiledGraph, node: str) -> tuple[ChangingPass, ...]:
    """The passes that change how a node is computed, in their order; none if the run did not record graphs.

    node -- of the graph before and after the passes: the lines are its own, and those of nodes that the graph
            did not have before the passes and that it is computed from. "": any node

    If no pass changes these lines, those are returned that move a write before or after a read of the same
    memory; without any, all passes that change the graph.
    """
    chain = _chain(run, graph)
    if chain is None:
        return ()
    texts = [
        (one.name or one.part, _definitions(run.text(one.text)))
        for one in chain.steps
        if one.part == _POST_GRAD or one.label == "partitioner"
    ]
    return tuple(_changes(texts, node)) or tuple(_moves(texts)) or tuple(_changes(texts, ""))


def earlier_passes(run: Run, graph: CompiledGraph) -> tuple[str, ...] | None:
    """The pre-grad and joint passes that change a graph: "joint pass remove_noop_ops".

    None: the run did not record them.
    """
    chain = _chain(run, graph)
    if chain is None:
        return None
    labels = []
    for before, after in itertools.pairwise(chain.steps):
        first = before.part in ("Dynamo", "AOTAutograd")
        within = after.part in ("pre-grad", "joint") and (first or before.part == after.part)
        if within and not same_graph(run.text(before.text), run.text(after.text)):
            labels.append(f"a {after.part} pass without a name" if after.name == LAST else after.label)
    return tuple(dict.fromkeys(labels))


def _chain(run: Run, graph: CompiledGraph) -> Chain | None:
    phase = "backward" if graph.phase == "backward" else "forward"
    own = (one for one in chains(run) if (one.compile_id, one.phase) == (graph.compile_id, phase))
    return next(own, None)


def _changes(texts: Sequence[tuple[str, Mapping[str, str]]], node: str) -> Iterator[ChangingPass]:
    received = texts[0][1] if texts else {}
    for (_, before), (name, after) in itertools.pairwise(texts):
        if node:
            ours, theirs = [*_computed(node, before, received)], [*_computed(node, after, received)]
        else:  # what both have is of no interest, nor is their order
            ours = [one for one in before.values() if one not in after.values()]
            theirs = [one for one in after.values() if one not in before.values()]
        if ours != theirs:
            yield ChangingPass(_UNNAMED if name == LAST else name, node, tuple(ours), tuple(theirs))


def _moves(texts: Sequence[tuple[str, Mapping[str, str]]]) -> Iterator[ChangingPass]:
    for (_, before), (name, after) in itertools.pairwise(texts):
        for write in [one for one in before if one in after and _WRITE.search(before[one])]:
            ours, theirs = _readers_after(write, before), _readers_after(write, after)
            moved = {one for one in (ours ^ theirs) if one in before and one in after}
            if moved:
                lines = [
                    tuple(lines[one] for one in lines if one in moved or one == write)
                    for lines in (before, after)
                ]
                yield ChangingPass(_UNNAMED if name == LAST else name, "", lines[0], lines[1])
                break


def _readers_after(write: str, lines: Mapping[str, str]) -> set[str]:
    # the nodes after a write that read its first operand, or a view of it
    operands = {name: _NODE.findall(line.partition(" = ")[2]) for name, line in lines.items()}
    if not operands[write]:
        return set()
    memory, passed, readers = {operands[write][0]}, False, set[str]()
    for name in lines:
        if name == write:
            passed = True
        elif memory.intersection(operands[name]):
            if _VIEW.search(lines[name]):
                memory.add(name)
            elif passed:
                readers.add(name)
    return readers


def _definitions(text: str) -> dict[str, str]:
    # by node: "%mul = aten.mul.Tensor(%x, 2)", without the type, which passes may fill in later
    lines = (line for line in text.splitlines() if line.startswith(("%", "output")))
    return {line[1:].partition(" ")[0] if line[0] == "%" else "": _TYPE.sub("", line) for line in lines}


def _computed(node: str, lines: Mapping[str, str], received: Mapping[str, str]) -> Iterator[str]:
    # its line, after those of nodes of which it is computed and which the passes have made
    needed, waiting = set[str](), [node]
    while waiting:
        name = waiting.pop()
        if name in needed or name not in lines:
            continue
        needed.add(name)
        operands = _NODE.findall(lines[name].partition(" = ")[2])
        waiting += [one for one in operands if one not in received]
    return (lines[name] for name in lines if name in needed)
