"""Calls of operators outside of Triton: a line for each, one in full, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from tracing.model import Operator, OperatorTensor
from tracing.report.launch import digest_text
from tracing.report.text import Line, plural, tensor_text


def operator_text(rank: int, one: Operator) -> Line:
    """`operator #5 aten::mm.out (after 1 launch, step 0)  # nans.py:4 in f`."""
    step = [] if one.step is None else [f"step {one.step}"]
    facts = ", ".join([f"after {plural(one.launch, 'launch')}", *step])
    site = f"  # {one.site}" if one.site else ""
    return Text.assemble(f"operator #{one.index} ", (one.name, "bold"), f" ({facts}){_of_rank(rank)}{site}")


def operator_in_full(rank: int, one: Operator) -> Iterator[Line]:
    """The call and its tensors, several lines each."""
    yield Text.assemble(f"operator #{one.index} ", (one.name, "bold"), _of_rank(rank))
    facts = {
        "at": str(one.site or "an unknown line of the program"),
        "launches": f"after {plural(one.launch, 'launch')}",
        **({} if one.step is None else {"step": f"step {one.step}"}),
        "arguments": one.arguments or "none but tensors",
    }
    yield from (Text(f"    {name:<9} {value}") for name, value in facts.items())
    if one.allocates:
        but = ", except for what it reads" if one.reads else ""
        yield Text(f"    allocates memory that is not yet written{but}")
    for side, when, tensors in (("input", "before", one.reads), ("output", "after", one.writes)):
        for position, tensor in enumerate(tensors):
            yield from _tensor(f"{side} {position}", when, tensor)


def _tensor(name: str, when: str, one: OperatorTensor) -> Iterator[Line]:
    meta = one.tensor
    yield Text(f"    {name} = {tensor_text(meta)}")
    yield Text(
        f"        stride {list(meta.stride)}, offset {meta.offset}, {meta.device}, storage {one.storage}"
    )
    yield Text(f"        {when:<7}{digest_text(one.digest) if one.digest else 'not digested'}")


def _of_rank(rank: int) -> str:
    return f" on rank {rank}" if rank else ""


def operators_json(run: str, operators: Sequence[tuple[int, Operator]]) -> dict[str, Any]:
    """Calls of operators, each with its rank, as data; keys as in docs/json.md."""
    return {"run": run, "operators": [_operator_json(rank, one) for rank, one in operators]}


def _operator_json(rank: int, one: Operator) -> dict[str, Any]:
    return {
        "rank": rank,
        "index": one.index,
        "name": one.name,
        "arguments": one.arguments,
        "launches": one.launch,
        "step": one.step,
        "thread": one.thread,
        "allocates": one.allocates,
        "site": f"{one.site.file}:{one.site.line}" if one.site else None,
        "reads": [_tensor_json(tensor) for tensor in one.reads],
        "writes": [_tensor_json(tensor) for tensor in one.writes],
    }


def _tensor_json(one: OperatorTensor) -> dict[str, Any]:
    return {
        "dtype": one.tensor.dtype,
        "shape": list(one.tensor.shape),
        "storage": one.storage,
        "digest": one.digest.bits if one.digest else None,
        "nan": one.digest.nan if one.digest else None,
        "inf": one.digest.inf if one.digest else None,
    }
