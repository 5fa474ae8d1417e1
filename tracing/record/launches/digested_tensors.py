"""Tensors that are digested before or after a launch or an operator, and the digest launches for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import and_

import numpy as np
import numpy.typing as npt
import torch

from tracing.digest.gpu import on_stream
from tracing.digest.layouts import layout
from tracing.digest.tables import Call, Table, calls, facts, tables, variant
from tracing.upstream.torch.dispatch_modes import dispatch_disabled


@dataclass(slots=True)
class DigestedTensors:
    """The tensors that are digested before or after a launch."""

    positions: Sequence[int]
    chosen: Sequence[int]  # indices into the template's positions
    tables: Sequence[Table]  # for the GPU
    facts: npt.NDArray[np.int64]  # of the tensors, for the GPU
    copied: frozenset[int]  # positions of tensors that must be copied first
    misaligned: Sequence[int]  # mask for each address: a tensor with one of these bits set is copied first


def digested_tensors(
    tensors: Mapping[int, torch.Tensor], among: Sequence[int], device: torch.device | None, *, wanted: bool
) -> DigestedTensors:
    """Describe the tensors at these positions.

    among  -- positions of all tensors of the launch
    device -- the GPU, None on the host
    wanted -- False: no digests are taken
    """
    positions: Sequence[int] = list(tensors)
    if device is not None:
        positions = sorted(positions, key=lambda i: variant(tensors[i]))
    ordered = [tensors[i] for i in positions]
    layouts = [layout(tensor) for tensor in ordered]
    return DigestedTensors(
        positions,
        [among.index(i) for i in positions],
        tables(ordered) if device is not None and wanted else (),
        facts(ordered),
        frozenset(i for i, one in zip(positions, layouts, strict=True) if one is None),
        [one.misaligned if one else 15 for one in layouts],
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
        made = tables(read) if misaligned else side.tables
        return calls(made, [tensor.data_ptr() for tensor in read])
