"""The digest kernel on a GPU: compiled once for each variant, launched through Triton or by the driver."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
import triton

from tracing.digest.kernel import AHEAD, ANY, FIELDS, SHORT, digest_kernel
from tracing.digest.tables import (
    LAYOUT_COLUMNS,
    WARPS,
    WIDTH,
    Call,
    Positions,
    Variant,
    flat,
    load_meanings,
    merged,
    separate,
    slots_of,
)
from tracing.upstream.triton.compiled_kernel import load_binary
from tracing.upstream.triton.driver import current_target
from tracing.upstream.triton.jit import ASTSource


def source(variant: Variant) -> ASTSource:
    """The digest kernel for fixed types: a JITFunction would specialise on values, and compile often."""
    column = ("i64",) * WIDTH
    types: dict[str, Any] = dict.fromkeys(digest_kernel.arg_names, column)
    types["layouts"] = (column,) * LAYOUT_COLUMNS
    constants = {"KIND": variant.kind, "READING": variant.reading} | dict.fromkeys(variant.unread)
    return ASTSource(digest_kernel, types | dict.fromkeys(constants, "constexpr"), constants)


def options(variant: Variant) -> dict[str, int]:
    """How Triton compiles the digest kernel."""
    limited = {"maxnreg": 128} if variant.reading in (2, 4) else {}  # 1.2 times as fast on an H200
    return {"num_warps": WARPS} | limited


class CompiledDigest(NamedTuple):
    """A digest kernel on a device, and its launcher."""

    run: Any
    function: int
    packed_metadata: Any
    kernel: Any  # held: once nothing refers to it, its module is unloaded (triton 946e151bf, #9444, 3.8)


_loaded: set[tuple[int, Variant]] = set()  # devices and variants of digest kernels


def load_before_capture(device: int) -> None:
    """Load the digest kernels of contiguous tensors, and the meanings of bytes, for the next capture."""
    load_meanings(torch.device("cuda", device))
    for reading in (SHORT, AHEAD):
        _compiled(device, Variant(ANY, reading))


def all_loaded(device: int, calls: Sequence[Call]) -> bool:
    """True if the digest kernels of these calls are loaded on the device."""
    return all((device, table.variant) in _loaded for table, _ in calls)


@functools.cache
def _compiled(device: int, variant: Variant) -> CompiledDigest:
    _loaded.add((device, variant))
    with torch.cuda.device(device):
        target = current_target()
        kernel = triton.compile(source(variant), target=target, options=options(variant))
        load_binary(kernel)
    return CompiledDigest(kernel.run, kernel.function, kernel.packed_metadata, kernel)


def launch_digests(device: int, stream: int, address: int, calls: Sequence[Call]) -> None:
    """Launch the digests of tensors.

    stream  -- a handle
    address -- of the first slot, on the device
    """
    slots = [address + i * (FIELDS * 8) for i in range(sum(table.count for table, _ in calls))]
    launch_into_slots(device, stream, slots, separate(calls))


def launch_into_slots(
    device: int, stream: int, slots: Sequence[int], calls: Sequence[tuple[Call, Positions]]
) -> None:
    """Launch the digests of tensors.

    slots -- the addresses of those at all positions
    """
    for (table, tensors), positions in calls:
        if table.programs:
            run, function, packed, _ = _compiled(device, table.variant)
            run(
                table.programs, 1, 1, stream, function, packed, None, None, None,
                tensors, slots_of(positions, slots), *table.columns, *table.variant,
            )  # fmt: skip


DriverCall: TypeAlias = tuple[int, int, int, int, tuple[int, ...], Positions]


def driver_calls(device: int, calls: Sequence[Call]) -> list[DriverCall]:
    """The same launches as arguments of CUDA's cuLaunchKernel, but for the addresses of the slots.

    Each is a function, the programs, threads of one, its shared memory in bytes, its arguments, and the
    positions of its tensors among those of all calls.
    """
    return [_driver_call(device, *one) for one in separate(calls)]


def merged_calls(device: int, calls: Sequence[Call]) -> list[DriverCall]:
    """As `driver_calls`, in as few launches as there can be."""
    return [_driver_call(device, *one) for one in merged(calls)]


def _driver_call(device: int, call: Call, positions: Positions) -> DriverCall:
    table, tensors = call
    compiled = _compiled(device, table.variant)
    arguments = flat(tensors, (0,) * WIDTH, table.columns)
    return (
        compiled.function,
        table.programs,
        32 * WARPS,
        compiled.kernel.metadata.shared,
        arguments,
        positions,
    )
