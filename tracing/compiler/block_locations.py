"""Read the locations of block arguments, which MLIR's text omits for `scf.for` and similar operations.

Triton gives each value the location, and with it the name, of its Python variable, from which a loop's
`%total_26` gets its printed name. Parsed text has lost the locations of block arguments, and prints `%arg8`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from tracing.upstream.triton.libtriton import ir


def block_locations(module: Any) -> tuple[str, ...]:
    """The location of every block argument of a module as MLIR writes it, block by block; some 2 µs an op."""
    return tuple(str(argument.get_loc()) for argument in _arguments(module))


def set_block_locations(module: Any, locations: Sequence[str]) -> None:
    """Restore the locations of the block arguments of a module that was parsed from text.

    Does nothing if the number of arguments differs.
    """
    arguments = [*_arguments(module)]
    if not locations or len(arguments) != len(locations):
        return
    for argument, location in zip(arguments, _parsed(locations, module.context), strict=True):
        argument.set_loc(location)


def _arguments(module: Any) -> Iterator[Any]:
    blocks: dict[int, Any] = {}

    def visit(operation: Any) -> None:
        if (block := operation.get_block()) is not None:
            blocks.setdefault(block.id(), block)

    module.walk(visit)
    for block in blocks.values():
        yield from map(block.get_argument, range(block.get_num_arguments()))


def _parsed(locations: Sequence[str], context: Any) -> list[Any]:
    # the bindings cannot parse a location: parse a function whose arguments have these locations
    arguments = ", ".join(f"%{i}: i32 {one}" for i, one in enumerate(locations))
    text = f"module {{ tt.func @locations({arguments}) {{ tt.return }} }}"
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        parsed = ir.parse_mlir_module(file.name, context)
    function = parsed.get_function("locations")
    return [function.args(i).get_loc() for i in range(len(locations))]
