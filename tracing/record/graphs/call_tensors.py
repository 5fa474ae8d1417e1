"""Keeps the inputs and results of calls of graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import torch

from tracing.model import GraphTensor
from tracing.record.outputs import OutputKeeper


class CallTensors:
    """The contents of tensors that calls of graphs read and return."""

    def __init__(self, keeper: OutputKeeper) -> None:
        self._keeper = keeper

    def keep(
        self, call: int, side: Literal["input", "output", "afterwards"], values: Mapping[int, Any]
    ) -> None:
        """Keep those of some values, by position, that are tensors with strides."""
        for position, value in values.items():
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                record: Callable[[str], GraphTensor] = partial(GraphTensor, call, position, side)
                self._keeper.keep_as(f"{side} {position} of graph call {call}", record, value)
