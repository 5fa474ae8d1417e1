"""Tensors that are digested before or after a launch or an operator, and the digest launches for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import and_

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.gpu import on_stream
from tracing.digest.tables import Call, Table, TableRow, calls, facts, tables
from tracing.upstream.torch.dispatch_modes import dispatch_disabled


@dataclass(frozen=True, slots=True)
class DigestedTensors:
    """The tensors that are digested before or after a launch."""

    positions: Sequence[int]
    chosen: Sequence[int]  # indices into the template's positions
    tables: Sequence[Table]  # for the GPU
    facts: npt.NDArray[np.int64]  # of the tensors, for the GPU
    copied: frozenset[int]  # positions of tensors that must be copied first
    misaligned: Sequence[int]  # mask for each address: a tensor with one of these bits set is copied first


NOTHING_DIGESTED = DigestedTensors([], [], (), facts([]), frozenset(), [])


def digested_tensors(
    tensors: Mapping[int, torch.Tensor], among: Sequence[int], device: torch.device | None, *, wanted: bool
) -> DigestedTensors:
    """Describe the tensors at these positions.

    among  -- positions of all tensors of the launch
    device -- the GPU, None on the host
    wanted -- False: no digests are taken
    """
    if device is None or not wanted:
        return replace(NOTHING_DIGESTED, positions=list(tensors))
    rows = {i: TableRow.of(tensor) for i, tensor in tensors.items()}
    positions = sorted(rows, key=lambda i: rows[i].variant)
    ordered = [rows[i] for i in positions]
    return DigestedTensors(
        positions,
        [among.index(i) for i in positions],
        tables(ordered),
        facts(ordered),
        frozenset(i for i, row in rows.items() if row.copied),
        [row.layout.misaligned for row in ordered],
    )


def calls_at(side: DigestedTensors, addresses: Sequence[int]) -> Sequence[Call] | None:
    """The digest launches for tensors at these addresses; None: some must be copied first.

    addresses -- of all tensors of the launch
    """
    chosen = [addresses[i] for i in side.chosen]
    readable = not side.copied and not any(map(and_, chosen, side.misaligned))
    return calls(side.tables, chosen) if readable and side.tables else None


def copied_calls(
    side: DigestedTensors, tensors: Sequence[torch.Tensor], device: torch.device, stream: int
) -> Sequence[Call]:
    """The digest launches for tensors, after copying those that the kernel cannot read directly.

    tensors -- in the order of `side.positions`
    stream  -- the handle of the stream that copies, and frees the copies after the digests
    """
    with dispatch_disabled(), on_stream(device, stream):
        read = list(tensors)
        misaligned = any(map(and_, [tensor.data_ptr() for tensor in read], side.misaligned))
        for n, position in enumerate(side.positions):
            if position in side.copied:
                plain = read[n].resolve_conj().resolve_neg()
                read[n] = plain.clone(memory_format=torch.contiguous_format)
        made = tables(map(TableRow.of, read)) if misaligned else side.tables
        return calls(made, [tensor.data_ptr() for tensor in read])
