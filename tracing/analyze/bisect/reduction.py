"""IR made smaller, while something holds of it: that a pass dies on it, or makes something bad of it.

Operations are taken out by delta debugging: what used their results gets arguments of the function instead,
so any operation can go. Loops and branches are replaced by their bodies, arguments of one type by one of
them, attributes are dropped, and sizes are halved. MLIR says which of the candidates are IR.

Nothing here knows what is looked for: whoever reduces brings a predicate.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import TypeAlias

from tracing.analyze.bisect.delta_debugging import minimal
from tracing.mlir import edits
from tracing.mlir.generic import Module, parsed, printed
from tracing.mlir.names import make_unique

Holds: TypeAlias = Callable[[str], bool]
Edit: TypeAlias = Callable[[Module], bool]  # whether there was anything to change
_NUMBER = re.compile(
    r"\"[^\"]*\"|(?:(?<![\w.#%^-])|(?<=\dx))(\d+)(?:(?![\w.-])|(?=x))"
)  # or text, to skip it


def reduced(text: str, holds: Holds) -> str:
    """The smallest IR that was found, in generic form.

    text  -- a module in generic form, of which it holds; that is not asked
    holds -- whether it does of another one; false also of what is no IR

    Cost: some hundreds to thousands of questions. At any moment the last text of which `holds` was true is
    the smallest so far.
    """
    while True:
        before = size(text)
        for step in _STEPS:
            text = step(text, holds)
        if size(text) >= before:
            return text


def size(text: str) -> tuple[int, int]:
    """By what one IR is smaller than another: operations, then characters."""
    return len(edits.inner_operations(parsed(text))), len(text)


def _take_out(text: str, holds: Holds) -> str:
    module = _Copies(text)
    everything = range(len(edits.inner_operations(module.copy())))

    def without(kept: list[int]) -> str:
        rest = module.copy()
        edits.take_out(rest, set(everything) - set(kept))
        return printed(rest)

    if not everything or holds(without([])):
        return without([])
    return without(minimal(everything, lambda kept: holds(without(kept))))


def _bypass(text: str, holds: Holds) -> str:
    # where arguments of the function cannot replace results, as in what is compiled on
    def at(number: int) -> Edit:
        def edit(module: Module) -> bool:
            operations = edits.inner_operations(module)
            return number < len(operations) and edits.bypass(module, operations[number])

        return edit

    return _tried(text, holds, map(at, reversed(range(size(text)[0]))))


def _make_constants(text: str, holds: Holds) -> str:
    def at(number: int) -> Edit:
        def edit(module: Module) -> bool:
            operations = edits.inner_operations(module)
            return number < len(operations) and edits.make_constant(operations[number])

        return edit

    return _tried(text, holds, map(at, reversed(range(size(text)[0]))))


def _unwrap(text: str, holds: Holds) -> str:
    def at(number: int, region: int) -> Edit:
        def edit(module: Module) -> bool:
            wrapped = [one for one in edits.inner_operations(module) if one.regions]
            return number < len(wrapped) and edits.unwrap(module, wrapped[number], region)

        return edit

    count = sum(1 for one in edits.inner_operations(parsed(text)) if one.regions)
    return _tried(text, holds, (at(number, region) for number in range(count) for region in (0, 1)))


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
    places = [(n, at) for n, loop in enumerate(loops) for at in reversed(range(len(loop.results)))]
    return _tried(text, holds, (at(*place) for place in places))


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
    return _tried(text, holds, (pair(*one) for one in pairs))


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
    return _tried(text, holds, (argument(*place) for place in last_first))


def _drop_attributes(text: str, holds: Holds) -> str:
    module = _Copies(text)
    everything = list(_attributes(module.copy()))

    def without(kept: list[tuple[int, str, str]]) -> str:
        rest = module.copy()
        operations = list(rest.operation.walk())
        for at, kind, name in set(everything) - set(kept):
            del getattr(operations[at], kind)[name]
        return printed(rest)

    def passes(kept: list[tuple[int, str, str]]) -> bool:
        return holds(without(kept))

    if not everything or passes([]):
        return without([])
    return without(minimal(everything, passes))


def _attributes(module: Module) -> Iterator[tuple[int, str, str]]:
    for at, one in enumerate(module.operation.walk()):
        for kind in ("attributes", "properties"):
            yield from ((at, kind, name) for name in getattr(one, kind) if name not in _NEEDED)


_NEEDED = ("function_type", "sym_name", "operandSegmentSizes", "value", "predicate")


def _shrink(text: str, holds: Holds) -> str:
    # every number of the text, wherever it stands: sizes must agree
    for number in sorted({int(digits) for digits in _NUMBER.findall(text) if digits}, reverse=True):
        while number > 1:
            smaller = _NUMBER.sub(partial(_halved, number), text)
            if not holds(smaller):
                break
            text, number = smaller, number // 2
    return text


def _tried(text: str, holds: Holds, attempts: Iterator[Edit]) -> str:
    # one after the other, each on what the ones before it left
    module = _Copies(text)
    for edit in attempts:
        rest = module.copy()
        if edit(rest) and holds(smaller := printed(rest)):
            text, module = smaller, _Copies(smaller)
    return text


def _halved(number: int, match: re.Match[str]) -> str:
    return str(number // 2) if match[1] and int(match[1]) == number else match[0]


class _Copies:
    # of one module: to read its text each time would take long

    def __init__(self, text: str) -> None:
        self._module = parsed(text)
        make_unique(self._module)

    def copy(self) -> Module:
        return copy.deepcopy(self._module)


_STEPS = (
    _take_out,
    _unwrap,
    _drop_carried,
    _bypass,
    _make_constants,
    _merge_arguments,
    _drop_arguments,
    _drop_attributes,
    _shrink,
)
