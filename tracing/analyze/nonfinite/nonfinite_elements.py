"""Name the elements of a tensor that are NaN or infinite, where a run kept its values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracing.model import KeptTensor, Values
from tracing.store import Run, rank_of

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}  # of safetensors; BF16 is the upper half of F32


def nonfinite_elements(run: Run, rank: int, launch: int, position: int) -> list[int] | None:
    """The indices, in logical order, of NaN and inf in an argument after a launch; None: it was not kept."""
    for process in run.processes(Values):
        if rank_of(process) == rank:
            for one in run.view(process, Values, Values):
                if (one.launch, one.position, one.side) == (launch, position, "after"):
                    return [n for n, value in enumerate(one.values) if _is_bad(value)]
    for process in run.processes(KeptTensor):
        if rank_of(process) == rank:
            for kept in run.view(process, KeptTensor, KeptTensor):
                if (kept.launch, kept.position, kept.side) == (launch, position, "after"):
                    return _in_file(run.bytes(kept.blob))
    return None


def ranges(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Indices in growing order as ranges START:STOP."""
    made: list[tuple[int, int]] = []
    for index in indices:
        if made and made[-1][1] == index:
            made[-1] = (made[-1][0], index + 1)
        else:
            made.append((index, index + 1))
    return made


def _is_bad(value: object) -> bool:
    return value in ("nan", "inf", "-inf")


def _in_file(content: bytes) -> list[int] | None:
    # Source: the safetensors format: eight bytes of length, a header in JSON, then the elements
    size = int.from_bytes(content[:8], "little")
    tensor = json.loads(content[8 : 8 + size])["tensor"]
    start, stop = tensor["data_offsets"]
    data = content[8 + size + start : 8 + size + stop]
    if tensor["dtype"] == "BF16":
        values: Any = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    elif tensor["dtype"] in _DTYPES:
        values = np.frombuffer(data, _DTYPES[tensor["dtype"]])
    else:
        return None
    return [int(index) for index in np.flatnonzero(~np.isfinite(values))]
