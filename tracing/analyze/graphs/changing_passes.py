"""Which passes of Inductor change how a node, or a result, of a graph is computed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tracing.analyze.graphs.graph_chains import UNNAMED, Chain, GraphStep
from tracing.analyze.graphs.graph_names import same_graph
from tracing.analyze.graphs.graph_pass_table import FREEZING, chain_of, freezes
from tracing.analyze.graphs.graph_results import position_in_joint, result_lines
from tracing.analyze.graphs.result_forms import changed_by, forms_of
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
_NOT_NAMED = "a pass that torch does not name"


@dataclass(frozen=True, slots=True)
class ChangingPass:
    """A pass, and the lines of a graph that compute a node before and after it."""

    name: str  # as torch's observer names it, "post_grad_custom_post_pass"
    node: str  # whose computation it changes; "": it changes the graph
    before: tuple[str, ...]
    after: tuple[str, ...]
    code: str = ""  # of a pass outside of torch: "mine (train.py:12)"


@dataclass(frozen=True, slots=True)
class EarlierPass:
    """A pre-grad or joint pass, or freezing, that changes a graph, and the lines that only one side has."""

    index: int  # as of `GraphPass`
    name: str  # "joint pass remove_noop_ops", "freezing"
    before: tuple[str, ...]  # both are empty if it changes the order of nodes
    after: tuple[str, ...]
    code: str = ""  # as of `ChangingPass`
    cleared: bool = False  # it does not change how the result is computed, or not its wrong dtype and shape
    changes_dtype: bool = False  # it gives the result its wrong dtype


class _Text(NamedTuple):
    name: str  # of the pass that has left this graph
    code: str
    lines: Mapping[str, str]


def changing_passes(run: Run, graph: CompiledGraph, node: str) -> tuple[ChangingPass, ...]:
    """The passes that change how a node is computed, in their order; none if the run did not record graphs.

    node -- of the graph before and after the passes: the lines are its own, and those of nodes that the graph
            did not have before the passes and that it is computed from. "": any node

    If no pass changes these lines, those are returned that move a write before or after a read of the same
    memory; without any, all passes that change the graph.
    """
    chain = chain_of(run, graph)
    if chain is None:
        return ()
    texts = [
        _Text(one.name or one.part, one.code, _definitions(run.text(one.text)))
        for one in chain.steps
        if one.part == _POST_GRAD or one.label == "partitioner"
    ]
    return tuple(_changes(texts, node)) or tuple(_moves(texts)) or tuple(_changes(texts, ""))


def earlier_passes(
    run: Run, graph: CompiledGraph, result: str = "", dtype: str = ""
) -> tuple[EarlierPass, ...] | None:
    """The pre-grad and joint passes that change a graph, then freezing; None: the run did not record them.

    result -- of Dynamo's graph, "output 0", "gradient of input 2". Where it is known which one of the joint
              graph that is, the joint passes are cleared that do not change how it is computed; "": none is
    dtype  -- its dtype and shape, if they are wrong: "float32 [6, 4], not float16 [6, 4]". Where it is known
              by which step it has them, the others are cleared
    """
    chain = chain_of(run, graph)
    if chain is None:
        return None
    position = _position(run, chain, result, other_type=bool(dtype))
    changing = tuple(
        _earlier(index, after, run.text(before.text), run.text(after.text), position)
        for index, (before, after) in enumerate(itertools.pairwise(chain.steps), 1)
        if (_within(before, after) or freezes(run, before, after))
        and not same_graph(run.text(before.text), run.text(after.text))
    )
    return _by_dtype(run, chain, changing, position, dtype)


def _by_dtype(
    run: Run, chain: Chain, passes: tuple[EarlierPass, ...], position: int | None, dtype: str
) -> tuple[EarlierPass, ...]:
    forms = forms_of(dtype)
    if position is None or forms is None:
        return passes
    joint = [i for i, one in enumerate(chain.steps) if one.part in ("AOTAutograd", "joint")]
    by = changed_by([run.text(chain.steps[i].text) for i in joint], position, *forms)
    if by is None:
        return passes
    at = joint[by]  # 0: AOTAutograd, by decompositions, or a pre-grad pass
    return tuple(
        replace(
            one,
            cleared=one.index > at if by == 0 else one.index != at,
            changes_dtype=by > 0 and one.index == at,
        )
        for one in passes
    )


def _within(before: GraphStep, after: GraphStep) -> bool:
    first = before.part in ("Dynamo", "AOTAutograd")
    return after.part in ("pre-grad", "joint") and (first or before.part == after.part)


def _position(run: Run, chain: Chain, result: str, *, other_type: bool) -> int | None:
    # in the joint graph
    texts = [run.text(one.text) for one in chain.steps if one.part in ("Dynamo", "AOTAutograd")]
    if not result or len(texts) != 2:
        return None
    return position_in_joint(texts[0], texts[1], result, other_type=other_type)


def _earlier(index: int, step: GraphStep, before: str, after: str, position: int | None) -> EarlierPass:
    name = f"a {step.label}" if step.name == UNNAMED else step.label
    name = FREEZING if name == "partitioner" else name
    if step.part == "joint" and position is not None:
        ours, theirs = result_lines(before, position), result_lines(after, position)
        if ours is not None and theirs is not None:
            if same_graph("\n".join(ours), "\n".join(theirs)):
                return EarlierPass(index, name, (), (), step.code, cleared=True)
            before, after = "\n".join(ours), "\n".join(theirs)
    lines = [_definitions(text).values() for text in (before, after)]
    only = [[one for one in own if one not in other] for own, other in (lines, lines[::-1])]
    return EarlierPass(index, name, tuple(only[0]), tuple(only[1]), step.code)


def _changes(texts: Sequence[_Text], node: str) -> Iterator[ChangingPass]:
    received = texts[0].lines if texts else {}
    for (_, _, before), (name, code, after) in itertools.pairwise(texts):
        if node:
            ours, theirs = [*_computed(node, before, received)], [*_computed(node, after, received)]
        else:  # what both have is of no interest, nor is their order
            ours = [one for one in before.values() if one not in after.values()]
            theirs = [one for one in after.values() if one not in before.values()]
        if ours != theirs:
            yield ChangingPass(
                _NOT_NAMED if name == UNNAMED else name, node, tuple(ours), tuple(theirs), code
            )


def _moves(texts: Sequence[_Text]) -> Iterator[ChangingPass]:
    for earlier, later in itertools.pairwise(texts):
        before, after = _outer(earlier.lines), _outer(later.lines)
        for write in [one for one in before if one in after and _WRITE.search(before[one])]:
            ours, theirs = _readers_after(write, before), _readers_after(write, after)
            moved = {one for one in (ours ^ theirs) if one in before and one in after}
            if moved:
                lines = [
                    tuple(lines[one] for one in lines if one in moved or one == write)
                    for lines in (before, after)
                ]
                name = _NOT_NAMED if later.name == UNNAMED else later.name
                yield ChangingPass(name, "", lines[0], lines[1], later.code)
                break


def _outer(lines: Mapping[str, str]) -> dict[str, str]:
    # without those of graphs inside of the graph
    return {name: line for name, line in lines.items() if "/" not in name}


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
    # by node: "%mul = aten.mul.Tensor(%x, 2)", without the type, which passes may fill in later; a node of a
    # graph inside of it has the name of the outer node before its own: "body/mul"
    lines: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        definition = line.lstrip(" ")
        depth = (len(line) - len(definition)) // 4
        if definition.startswith(("%", "output")):
            names[depth:] = [definition[1:].partition(" ")[0] if definition[0] == "%" else ""]
            lines["/".join(names)] = _TYPE.sub("", definition)
    return lines


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
    return (lines[name] for name in lines if name.partition("/")[0] in needed)
