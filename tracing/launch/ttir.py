"""A kernel's TTIR, parsed by MLIR: its functions, operations and values."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracing.upstream.triton.libtriton import ir


class Op(NamedTuple):
    """One operation; values, blocks and regions are MLIR's numbers for them."""

    name: str  # "tt.load"
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[int, ...]
    callee: str | None  # of a tt.call


@dataclass(frozen=True, slots=True)
class TtirModule:
    """The functions of one kernel."""

    entry: str  # the public function
    pointers: tuple[int, ...]  # positions of its arguments that are pointers or descriptors
    words: tuple[int, ...]  # of those that are integers of 64 bits
    functions: Mapping[str, int]  # name -> region
    ops: Mapping[int, list[Op]]  # region -> the operations directly in it
    blocks: Mapping[int, list[tuple[int, ...]]]  # region -> the arguments of each block, entry first


def parse(ttir: str) -> TtirModule:
    """Read the text of a module, in a context of its own.

    Raises ValueError if MLIR refuses it; the reason is on stderr.
    """
    context = ir.context()  # not the module of a compile in progress
    ir.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(ttir)
        file.flush()
        try:
            parsed = ir.parse_mlir_module(file.name, context)
        except RuntimeError as error:
            raise ValueError("MLIR refuses the TTIR") from error
    return _read(parsed)


def _read(parsed: Any) -> TtirModule:
    functions: dict[str, int] = {}
    ops: dict[int, list[Op]] = {}
    blocks: dict[int, dict[int, tuple[int, ...]]] = {}

    def read(op: Any) -> None:
        block = op.get_block()
        if block is None:  # the module itself
            return
        region = block.get_parent().id()
        if op.get_name() == "tt.func" and not op.get_region(0).empty():
            functions[op.get_str_attr("sym_name")] = op.get_region(0).id()
        known = blocks.setdefault(region, {})
        if block.id() not in known:
            known[block.id()] = tuple(block.arg(i).id() for i in range(block.get_num_arguments()))
        ops.setdefault(region, []).append(_op(op))

    parsed.walk(read)  # the operations of a block in order, the blocks of a region in order
    entry = parsed.get_entry_func_name()
    return TtirModule(
        entry,
        _positions(parsed.get_function(entry), ("!tt.ptr<", "!tt.tensordesc<")),
        _positions(parsed.get_function(entry), ("i64",)),
        functions,
        ops,
        {region: list(known.values()) for region, known in blocks.items()},
    )


def _op(op: Any) -> Op:
    name = op.get_name()
    return Op(
        name,
        tuple(op.get_operand(i).id() for i in range(op.get_num_operands())),
        tuple(op.get_result(i).id() for i in range(op.get_num_results())),
        tuple(op.get_region(i).id() for i in range(op.get_num_regions())),
        op.get_flat_symbol_ref_attr("callee") if name == "tt.call" else None,
    )


def _positions(function: Any, types: tuple[str, ...]) -> tuple[int, ...]:
    # of the arguments whose type begins like one of these
    kinds = (str(function.args(i).get_type()) for i in range(function.get_num_args()))
    return tuple(i for i, kind in enumerate(kinds) if kind.startswith(types))
