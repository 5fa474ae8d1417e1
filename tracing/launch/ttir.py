"""A kernel's TTIR, parsed by MLIR: its functions, operations and values."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracing.upstream.triton.libtriton import ir

# Operations whose attributes are read from MLIR's text. The bindings of Triton 3.6 have none of them.
# The value of a constant that is a tensor is in those of no version.
_WANTED = r"arith\.(?:constant|cmpi)|tt\.(?:get_program_id|get_num_programs|make_range|expand_dims)"
_PRINTED = re.compile(rf"^ *%\S+ = ({_WANTED}) (.*)$", re.MULTILINE)


class Op(NamedTuple):
    """One operation; values, blocks and regions are MLIR's numbers for them."""

    name: str  # "tt.load"
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[int, ...]
    callee: str | None  # of a tt.call, or the name of a function of a library
    types: tuple[str, ...]  # of the results: "tensor<64x!tt.ptr<f32>>"


@dataclass(frozen=True, slots=True)
class TtirModule:
    """The functions of one kernel."""

    entry: str  # the public function
    pointers: tuple[int, ...]  # positions of its arguments that are pointers or descriptors
    words: tuple[int, ...]  # of those that are integers of 64 bits
    types: tuple[str, ...]  # of all its arguments
    printed: Mapping[int, str]  # result -> what follows the name of an operation that is `_WANTED`
    functions: Mapping[str, int]  # name -> region
    ops: Mapping[int, list[Op]]  # region -> the operations directly in it
    blocks: Mapping[int, list[tuple[int, ...]]]  # region -> the arguments of each block, entry first


@functools.lru_cache(8)  # one kernel's questions follow each other
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
    wanted: list[tuple[str, int]] = []

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
        if re.fullmatch(_WANTED, op.get_name()):
            wanted.append((op.get_name(), op.get_result(0).id()))

    parsed.walk(read)  # the operations of a block in order, the blocks of a region in order
    entry = parsed.get_entry_func_name()
    function = parsed.get_function(entry)
    types = tuple(str(function.args(i).get_type()) for i in range(function.get_num_args()))
    return TtirModule(
        entry,
        tuple(i for i, kind in enumerate(types) if kind.startswith(("!tt.ptr<", "!tt.tensordesc<"))),
        tuple(i for i, kind in enumerate(types) if kind.startswith("i64")),
        types,
        _printed(wanted, parsed.str_nodebug()),
        functions,
        ops,
        {region: list(known.values()) for region, known in blocks.items()},
    )


def _op(op: Any) -> Op:
    name = op.get_name()
    results = [op.get_result(i) for i in range(op.get_num_results())]
    return Op(
        name,
        tuple(op.get_operand(i).id() for i in range(op.get_num_operands())),
        tuple(result.id() for result in results),
        tuple(op.get_region(i).id() for i in range(op.get_num_regions())),
        _callee(op, name),
        tuple(str(result.get_type()) for result in results),
    )


def _callee(op: Any, name: str) -> str | None:
    if name == "tt.extern_elementwise":
        return str(op.get_str_attr("symbol"))
    return op.get_flat_symbol_ref_attr("callee") if name == "tt.call" else None


def _printed(wanted: list[tuple[str, int]], text: str) -> dict[int, str]:
    # operations without regions are printed in the order of the walk
    lines = _PRINTED.findall(text)
    if [name for name, _ in wanted] != [name for name, _ in lines]:
        return {}
    return {result: rest for (_, result), (_, rest) in zip(wanted, lines, strict=True)}
