"""Reduce IR while a predicate holds, such as "a pass crashes on it" or "a pass miscompiles it".

Delta debugging removes operations: arguments of the function replace their results, so any operation can go.
Blocks and the operands of branches are removed in the same manner. Loops and branches are replaced by their
bodies, several arguments of one type by one of them; attributes are dropped and sizes are halved. MLIR
decides which candidates are valid IR.

The caller provides the predicate.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from itertools import combinations

from tracing.analyze.bisect.reduction_search import Edit, Holds, fewest, tried
from tracing.mlir import control_flow, edits
from tracing.mlir.generic import Module, parsed

# a number, or a text in quotes, to skip it
_NUMBER = re.compile(r"\"[^\"]*\"|(?:(?<![\w.#%^-])|(?<=\dx))(\d+)(?:(?![\w.-])|(?=x))")


def reduced(text: str, holds: Holds) -> str:
    """The smallest IR that was found, in generic form.

    text  -- a module in generic form; the predicate holds for it and is not called with it
    holds -- the predicate; false also for text that is not valid IR

    Cost: some hundreds to thousands of calls. At any moment the last text for which `holds` was true is the
    smallest so far.
    """
    while True:
        before = size(text)
        for step in _STEPS:
            text = step(text, holds)
        if size(text) >= before:
            return text


def size(text: str) -> tuple[int, int]:
    """The size by which IRs are ordered: operations with branches, then characters."""
    module = parsed(text)
    return len(edits.inner_operations(module)) + len(control_flow.branches(module)), len(text)


def _take_out(text: str, holds: Holds) -> str:
    def operations(module: Module) -> Sequence[int]:
        return range(len(edits.inner_operations(module)))

    return fewest(text, holds, operations, edits.take_out)


def _take_out_blocks(text: str, holds: Holds) -> str:
    def blocks(module: Module) -> Sequence[int]:
        return range(len(control_flow.blocks_after_entry(module)))

    return fewest(text, holds, blocks, control_flow.take_out_blocks)


def _return_early(text: str, holds: Holds) -> str:
    def at(number: int) -> Edit:
        def edit(module: Module) -> bool:
            branches = control_flow.branches(module)
            if number >= len(branches):
                return False
            control_flow.return_instead(module, branches[number])
            return True

        return edit

    count = len(control_flow.branches(parsed(text)))
    return tried(text, holds, (at(number) for number in range(count)))


def _drop_passed(text: str, holds: Holds) -> str:
    return fewest(text, holds, control_flow.passed, control_flow.drop_passed)


def _join_blocks(text: str, holds: Holds) -> str:
    return tried(text, holds, iter([control_flow.join]))


def _bypass(text: str, holds: Holds) -> str:
    # for IR that is compiled further: arguments of the function cannot replace results there
    def at(number: int, first: bool) -> Edit:
        def edit(module: Module) -> bool:
            operations = edits.inner_operations(module)
            return number < len(operations) and edits.bypass(module, operations[number], first=first)

        return edit

    last_first = reversed(range(size(text)[0]))
    return tried(text, holds, (at(number, first) for number in last_first for first in (False, True)))


def _make_constants(text: str, holds: Holds) -> str:
    def at(number: int) -> Edit:
        def edit(module: Module) -> bool:
            operations = edits.inner_operations(module)
            return number < len(operations) and edits.make_constant(operations[number])

        return edit

    return tried(text, holds, map(at, reversed(range(size(text)[0]))))


def _unwrap(text: str, holds: Holds) -> str:
    def at(number: int, region: int) -> Edit:
        def edit(module: Module) -> bool:
            wrapped = [one for one in edits.inner_operations(module) if one.regions]
            return number < len(wrapped) and edits.unwrap(module, wrapped[number], region)

        return edit

    count = sum(1 for one in edits.inner_operations(parsed(text)) if one.regions)
    return tried(text, holds, (at(number, region) for number in range(count) for region in (0, 1)))


def _drop_carried(text: str, holds: Holds) -> str:
    def at(number: int, position: int) -> Edit:
        def edit(module: Module) -> bool:
            loops = [one for one in edits.inner_operations(module) if one.name == "scf.for"]
            if number >= len(loops) or position >= len(loops[number].results):
                return False
            edits.drop_carried(module, loops[number], position)
            return True

        return edit

    loops = [one for one in edits.inner_operations(parsed(text)) if one.name == "scf.for"]
    positions = [(n, at) for n, loop in enumerate(loops) for at in reversed(range(len(loop.results)))]
    return tried(text, holds, (at(*position) for position in positions))


def _merge_arguments(text: str, holds: Holds) -> str:
    def pair(function: int, a: int, b: int) -> Edit:
        def edit(module: Module) -> bool:
            one = edits.functions(module)[function]
            arguments = one.regions[0][0].arguments
            (first, kind), (second, other) = arguments[a], arguments[b]
            used = any(second in inner.operands for inner in one.walk())
            if kind != other or not used:
                return False
            edits.replace(one, {second: first})
            return True

        return edit

    functions = enumerate(edits.functions(parsed(text)))
    pairs = [
        (n, *two) for n, one in functions for two in combinations(range(len(one.regions[0][0].arguments)), 2)
    ]
    return tried(text, holds, (pair(*one) for one in pairs))


def _drop_arguments(text: str, holds: Holds) -> str:
    def argument(function: int, at: int) -> Edit:
        def edit(module: Module) -> bool:
            one = edits.functions(module)[function]
            name = one.regions[0][0].arguments[at][0]
            if any(name in inner.operands for inner in one.walk()):
                return False
            edits.drop_argument(one, at)
            return True

        return edit

    functions = list(enumerate(edits.functions(parsed(text))))
    last_first = [(n, at) for n, one in functions for at in reversed(range(len(one.regions[0][0].arguments)))]
    return tried(text, holds, (argument(*position) for position in last_first))


def _drop_attributes(text: str, holds: Holds) -> str:
    def drop(module: Module, gone: Collection[tuple[int, str, str]]) -> None:
        operations = list(module.operation.walk())
        for at, kind, name in gone:
            del getattr(operations[at], kind)[name]

    return fewest(text, holds, _attributes, drop)


def _attributes(module: Module) -> list[tuple[int, str, str]]:
    return [
        (at, kind, name)
        for at, one in enumerate(module.operation.walk())
        for kind in ("attributes", "properties")
        for name in getattr(one, kind)
        if name not in _NEEDED
    ]


_NEEDED = ("function_type", "sym_name", "operandSegmentSizes", "value", "predicate")


def _shrink(text: str, holds: Holds) -> str:
    # every occurrence of the number in the text, because sizes must agree
    for number in sorted({int(digits) for digits in _NUMBER.findall(text) if digits}, reverse=True):
        while number > 1:
            smaller = _NUMBER.sub(partial(_halved, number), text)
            if not holds(smaller):
                break
            text, number = smaller, number // 2
    return text


def _halved(number: int, match: re.Match[str]) -> str:
    return str(number // 2) if match[1] and int(match[1]) == number else match[0]


_STEPS = (
    _take_out_blocks,
    _return_early,
    _take_out,
    _unwrap,
    _drop_carried,
    _drop_passed,
    _join_blocks,
    _bypass,
    _make_constants,
    _merge_arguments,
    _drop_arguments,
    _drop_attributes,
    _shrink,
)
