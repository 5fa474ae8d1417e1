"""Keeps the inputs of operators, with which an operator can be called anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

import torch

from tracing.launch import hooks
from tracing.model import KeptOperatorTensor
from tracing.operators.effects import Effect
from tracing.record.outputs import OutputKeeper, clone
from tracing.upstream.torch.cuda_graphs import is_capturing
from tracing.upstream.torch.dispatch_modes import dispatch_disabled


class OperatorInputs:
    """Clones the inputs of an operator before it runs, and keeps them under the recording's budget."""

    def __init__(
        self,
        keeper: OutputKeeper,
        not_covered: Callable[[str, str], None],
        launches: tuple[int, int] | None,
    ) -> None:
        """launches -- START, STOP: only operators before one of these launches; None: all"""
        self._keeper, self._not_covered = keeper, not_covered
        self._launches = range(*(launches or (0, sys.maxsize)))

    def cloned(self, effect: Effect, tensors: Sequence[torch.Tensor], launch: int) -> list[torch.Tensor]:
        """Clones of what an operator reads; empty if they are not wanted, or cannot be taken.

        launch -- the number of the next launch
        """
        if launch not in self._launches or (any(one.is_cuda for one in tensors) and is_capturing()):
            return []
        try:
            with dispatch_disabled(), hooks.hidden():
                return [clone(tensor.detach()) for tensor in tensors]
        except (RuntimeError, NotImplementedError) as error:
            what = f"the content of an input of {effect.name} ({str(error).splitlines()[0]})"
            self._not_covered(what, "--keep-memory")
            return []

    def keep(self, operator: int, clones: Sequence[torch.Tensor]) -> None:
        """Write the clones; the number of an operator is known only after it ran."""
        for position, tensor in enumerate(clones):
            record = partial(KeptOperatorTensor, operator, position)
            self._keeper.keep_as(f"operator {operator}, input {position}", record, tensor)
