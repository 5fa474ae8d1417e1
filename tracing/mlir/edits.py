"""Edit a module so that it stays valid: remove operations, inline loop bodies, change arguments.

Names of values are unique in the module (`names.make_unique`). MLIR decides whether the result is valid IR.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from tracing.mlir.generic import Block, Module, Operation, split

_ELEMENT = re.compile(r"(tensor<(?:\d+x)+)?(i\d+|index|bf16|f\d+)(?:, .*)?>?")
FUNCTIONS = ("tt.func", "llvm.func", "func.func")


def functions(module: Module) -> list[Operation]:
    """The functions that have a body."""
    return [
        one for one in module.operation.walk() if one.name in FUNCTIONS and one.regions and one.regions[0]
    ]


def blocks(one: Operation) -> Iterator[Block]:
    """Every block inside of an operation, from the outside in."""
    for inner in one.walk():
        for region in inner.regions:
            yield from region


def inner_operations(module: Module) -> list[Operation]:
    """The removable operations: those in functions, except for terminators."""
    return [
        one for function in functions(module) for block in blocks(function) for one in block.operations[:-1]
    ]


def take_out(module: Module, gone: Collection[int]) -> None:
    """Remove some of `inner_operations`, by position; uses of their results get arguments instead."""
    types = value_types(module)
    ids = {id(one) for at, one in enumerate(inner_operations(module)) if at in gone}
    for function in functions(module):
        for block in blocks(function):
            block.operations = [one for one in block.operations if id(one) not in ids]
        add_arguments(function, types)


def add_arguments(function: Operation, types: Mapping[str, str]) -> None:
    """Make every undefined value an argument of the function; `types` are those before the edit."""
    known = {name for block in blocks(function) for name, _ in block.arguments}
    known |= {name for one in function.walk() for name in one.results}
    missing = [name for one in function.walk() for name in one.operands if name not in known]
    entry = function.regions[0][0]
    if missing and not entry.label:
        entry.label = "^entry"
    renames = {name: f"%a{name[2:].replace('#', '_')}" for name in missing}
    entry.arguments += [(renames[name], types[name]) for name in dict.fromkeys(missing)]
    replace(function, renames)
    declare(function)


def bypass(module: Module, one: Operation, *, first: bool) -> bool:
    """Replace each result of an operation by an operand of its type; False if there is none.

    first -- of several operands of a type the first one is taken, not the last
    """
    given = list(zip(one.operand_types, one.operands, strict=True))
    by_type = dict(reversed(given) if first else given)
    if not one.results or not all(kind in by_type for kind in one.result_types):
        return False
    replace(
        module.operation, {name: by_type[k] for name, k in zip(one.results, one.result_types, strict=True)}
    )
    for block in blocks(module.operation):
        if one in block.operations:
            block.operations.remove(one)
    return True


def make_constant(one: Operation) -> bool:
    """Replace an operation by a constant; False if that is impossible."""
    if len(one.results) != 1 or one.name == "arith.constant" or (value := _zero(one.result_types[0])) is None:
        return False
    one.name, one.properties = "arith.constant", {"value": value}
    one.operands, one.operand_types, one.regions, one.attributes = [], [], [], {}
    return True


def _zero(kind: str) -> str | None:
    element = _ELEMENT.fullmatch(kind)
    if element is None:
        return None
    zero = "false" if element[2] == "i1" else "0" if element[2].startswith("i") else "0.000000e+00"
    if element[1]:
        return f"dense<{zero}> : {kind}"
    return zero if zero == "false" else f"{zero} : {kind}"


def value_types(module: Module) -> dict[str, str]:
    """The type of every value."""
    replaced: dict[str, str] = {}
    for one in module.operation.walk():
        replaced.update(zip(one.results, one.result_types, strict=False))
        for region in one.regions:
            for block in region:
                replaced.update(block.arguments)
    return replaced


def replace(one: Operation, values: Mapping[str, str]) -> None:
    """Replace uses of values inside of an operation."""
    for inner in one.walk():
        inner.operands = [_last(name, values) for name in inner.operands]


def _last(name: str, values: Mapping[str, str]) -> str:
    while name in values:
        name = values[name]
    return name


def declare(function: Operation) -> None:
    """Update a function's type to that of its arguments."""
    kinds = [kind for _, kind in function.regions[0][0].arguments]
    old = function.properties.get("function_type", "")
    if function.name == "llvm.func":
        result = old.removeprefix("!llvm.func<").partition("(")[0]
        function.properties["function_type"] = f"!llvm.func<{result}({', '.join(kinds)})>"
    else:
        function.properties["function_type"] = f"({', '.join(kinds)}) ->{old.rpartition('->')[2]}"
    attributes = split(function.properties.get("arg_attrs", "[]")[1:-1])
    if attributes:
        attributes = [*attributes, *["{}"] * len(kinds)][: len(kinds)]
        function.properties["arg_attrs"] = f"[{', '.join(attributes)}]"


def drop_argument(function: Operation, at: int) -> None:
    """Drop an argument that nothing uses."""
    del function.regions[0][0].arguments[at]
    attributes = split(function.properties.get("arg_attrs", "[]")[1:-1])
    if attributes:
        del attributes[at]
        function.properties["arg_attrs"] = f"[{', '.join(attributes)}]"
    declare(function)


def unwrap(module: Module, one: Operation, region: int) -> bool:
    """Replace a loop by the body of its first iteration, or a branch by its body; False if it cannot."""
    if not one.name.startswith("scf.") or region >= len(one.regions) or len(one.regions[region]) != 1:
        return False
    body = one.regions[region][0]
    starts = {"scf.for": [one.operands[0], *one.operands[3:]], "scf.if": []}.get(one.name)
    if starts is None or len(starts) != len(body.arguments):
        return False
    values = dict(zip((name for name, _ in body.arguments), starts, strict=True))
    values |= dict(zip(one.results, body.operations[-1].operands, strict=False))
    for block in blocks(module.operation):
        if one in block.operations:
            at = block.operations.index(one)
            block.operations[at : at + 1] = body.operations[:-1]
    replace(module.operation, values)
    return True


def drop_carried(module: Module, loop: Operation, at: int) -> None:
    """Drop a loop-carried value, by its position: it keeps its initial value."""
    body, start = loop.regions[0][0], loop.operands[3 + at]
    values = {body.arguments[1 + at][0]: start, loop.results[at]: start}
    for names in (loop.operands, loop.operand_types):
        del names[3 + at]
    for names in (body.operations[-1].operands, body.operations[-1].operand_types, loop.result_types):
        del names[at]
    del body.arguments[1 + at]
    base = loop.results[at].partition("#")[0]
    del loop.results[at]
    renamed = [base if len(loop.results) == 1 else f"{base}#{n}" for n in range(len(loop.results))]
    values |= {old: f"{new}'" for old, new in zip(loop.results, renamed, strict=True)}
    replace(module.operation, values)
    replace(module.operation, {f"{new}'": new for new in renamed})
    loop.results = renamed
