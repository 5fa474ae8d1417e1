"""Edit the blocks of a function so that it stays valid: remove blocks, join them, drop their arguments.

A branch is `br` or `cond_br` of MLIR's `cf` or `llvm`; of another one no successor is removed. Names of
values are unique in the module (`names.make_unique`). MLIR decides whether the result is valid IR.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tracing.mlir.edits import add_arguments, functions, replace, value_types
from tracing.mlir.generic import Block, Module, Operation

_SEGMENTS = "operandSegmentSizes"


@dataclass(frozen=True, slots=True)
class Edge:
    """One successor of a branch, and its operands."""

    label: str
    values: tuple[tuple[str, str], ...]  # names and types


def blocks_after_entry(module: Module) -> list[Block]:
    """Every block of a function's body but the first one."""
    return [block for function in functions(module) for block in function.regions[0][1:]]


def branches(module: Module) -> list[Operation]:
    """The terminators with successors."""
    return [one for function in functions(module) for one in function.walk() if one.successors]


def edges(branch: Operation) -> list[Edge] | None:
    """The successors of a branch with their operands; None: an unknown kind of branch."""
    values = list(zip(branch.operands, branch.operand_types, strict=True))
    kind = branch.name.partition(".")[2]
    if kind == "br":
        return [Edge(branch.successors[0], tuple(values))]
    if kind != "cond_br":
        return None
    sizes = re.findall(r"\d+", (branch.attribute(_SEGMENTS) or "").partition(":")[2])
    first = 1 + int(sizes[1])
    parts = (values[1:first], values[first:])
    return [Edge(label, tuple(part)) for label, part in zip(branch.successors, parts, strict=True)]


def take_out_blocks(module: Module, gone: Collection[int]) -> None:
    """Take out some of `blocks_after_entry`, by position; a branch to nothing else returns."""
    types = value_types(module)
    labelled = blocks_after_entry(module)
    ids = {id(labelled[at]) for at in gone}
    for function in functions(module):
        body = function.regions[0]
        labels = {block.label for block in body if id(block) in ids}
        end = _return_of(function)
        for block in body:
            _leave_out(block, labels, end)
        _keep_reachable(function)
        add_arguments(function, types)


def return_instead(module: Module, branch: Operation) -> None:
    """Replace a branch by a return; blocks that become unreachable are removed."""
    types = value_types(module)
    for function in functions(module):
        for block in function.regions[0]:
            if block.operations[-1] is branch:
                block.operations[-1] = _return_of(function)
        _keep_reachable(function)
        add_arguments(function, types)


def _return_of(function: Operation) -> Operation:
    ends = (block.operations[-1] for block in function.regions[0])
    known = next((one for one in ends if one.name.endswith(".return")), None)
    if known is not None:
        return copy.deepcopy(known)
    return Operation(f"{function.name.partition('.')[0]}.return", [], [], [], [], [], {}, {})


def _leave_out(block: Block, labels: Collection[str], end: Operation) -> None:
    branch = block.operations[-1]
    known = edges(branch) if branch.successors else None
    if known is None or not any(one.label in labels for one in known):
        return
    kept = [one for one in known if one.label not in labels]
    if kept:
        _point(branch, kept)
    else:
        block.operations[-1] = copy.deepcopy(end)


def _point(branch: Operation, to: Sequence[Edge]) -> None:
    # sets the successors of a branch
    condition = list(zip(branch.operands, branch.operand_types, strict=True))[:1] if len(to) == 2 else []
    values = [*condition, *(value for edge in to for value in edge.values)]
    branch.operands = [name for name, _ in values]
    branch.operand_types = [kind for _, kind in values]
    branch.successors = [edge.label for edge in to]
    if len(to) == 2:
        sizes = ", ".join(["1", *(str(len(edge.values)) for edge in to)])
        branch.properties[_SEGMENTS] = f"array<i32: {sizes}>"
    else:
        branch.name = f"{branch.name.partition('.')[0]}.br"
        branch.properties, branch.attributes = {}, {}


def _keep_reachable(function: Operation) -> None:
    body = function.regions[0]
    named = {block.label: block for block in body}
    reached, waiting = {id(body[0])}, [body[0]]
    while waiting:
        for label in waiting.pop().operations[-1].successors:
            if label in named and id(named[label]) not in reached:
                reached.add(id(named[label]))
                waiting.append(named[label])
    function.regions[0] = [block for block in body if id(block) in reached]


def passed(module: Module) -> list[tuple[int, int]]:
    """The operands that branches pass to blocks: the block in `blocks_after_entry`, and the position."""
    return [
        (number, at)
        for number, block in enumerate(blocks_after_entry(module))
        for at in range(len(block.arguments))
    ]


def drop_passed(module: Module, positions: Collection[tuple[int, int]]) -> None:
    """Drop some of the operands of `passed`; their uses get arguments of the function instead."""
    types = value_types(module)
    numbers = {id(block): number for number, block in enumerate(blocks_after_entry(module))}
    for function in functions(module):
        gone: dict[str, set[int]] = {}
        for block in function.regions[0][1:]:
            gone[block.label] = {at for number, at in positions if number == numbers[id(block)]}
            block.arguments = _others(block.arguments, gone[block.label])
        for block in function.regions[0]:
            branch = block.operations[-1]
            known = edges(branch) if branch.successors else None
            if known is not None:
                _point(branch, [Edge(e.label, tuple(_others(e.values, gone[e.label]))) for e in known])
        add_arguments(function, types)


def _others(values: Sequence[tuple[str, str]], gone: Collection[int]) -> list[tuple[str, str]]:
    return [one for at, one in enumerate(values) if at not in gone]


def join(module: Module) -> bool:
    """Merge each block into its only predecessor if that has no other successor; True if any was merged."""
    joined = False
    for function in functions(module):
        for block in list(function.regions[0]):
            joined |= _append_followers(function, block)
    return joined


def _append_followers(function: Operation, block: Block) -> bool:
    body, joined = function.regions[0], False
    while block in body:
        branch = block.operations[-1]
        known = edges(branch) if branch.successors else None
        entered = Counter(label for other in body for label in other.operations[-1].successors)
        if known is None or len(known) != 1 or entered[known[0].label] != 1:
            break
        next_block = next(one for one in body if one.label == known[0].label)
        if next_block is block or next_block is body[0]:
            break
        names = [name for name, _ in next_block.arguments]
        block.operations[-1:] = next_block.operations
        body.remove(next_block)
        replace(function, dict(zip(names, (name for name, _ in known[0].values), strict=True)))
        joined = True
    return joined
