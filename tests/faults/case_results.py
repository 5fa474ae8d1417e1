"""The results and state of a case, computed without the recorder: they prove that a planted fault shows."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tracing.model import Case, Workload
from tracing.program.case import build
from tracing.virtual_gpu import virtual_gpu


def left_by(case: Case, seed: int = 0) -> dict[str, str]:
    """The result of a case and all state that its function can reach, bit by bit; of its second run.

    A recording runs a case twice as well, and keeps what the second run leaves.
    """
    with virtual_gpu():
        for _ in range(2):
            torch.manual_seed(seed)
            workload = build(case, "cpu")
            torch.manual_seed(seed)
            try:
                result = workload.fn(*workload.args, **workload.kwargs)
            except Exception as error:
                result = f"{type(error).__name__}: {str(error).partition(' object at ')[0]}"
    return dict(_walked("result", result)) | dict(_state(workload))


def _state(workload: Workload) -> Iterator[tuple[str, str]]:
    yield from _walked("args", [workload.args, workload.kwargs])
    for number, owner in enumerate(_reachable(workload.fn, set())):
        yield from _walked(f"state {number}", owner.state_dict())


def _reachable(value: Any, seen: set[int]) -> Iterator[Any]:
    """The modules and optimizers that a function closes over."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (torch.nn.Module, torch.optim.Optimizer)):
        yield value
    for cell in getattr(value, "__closure__", None) or ():
        yield from _reachable(cell.cell_contents, seen)
    if hasattr(value, "__wrapped__"):
        yield from _reachable(value.__wrapped__, seen)


def _walked(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, torch.Tensor):
        digest = hashlib.sha256(value.detach().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
        yield name, f"{value.dtype} {tuple(value.shape)} {value.stride()} {digest}"
    elif isinstance(value, Mapping):
        yield name, f"keys {sorted(map(str, value))}"
        for key, item in value.items():
            yield from _walked(f"{name}[{key!r}]", item)
    elif isinstance(value, (list, tuple)):
        yield name, f"{type(value).__name__} of {len(value)}"
        for index, item in enumerate(value):
            yield from _walked(f"{name}[{index}]", item)
    elif isinstance(value, float):
        yield name, struct.pack("d", value).hex()
    else:
        yield name, repr(sorted(value) if isinstance(value, set) else value)
