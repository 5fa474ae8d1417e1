"""Which operator outside of Triton wrote last what a launch reads."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tracing.record.plans import Plan


class LastWriters:
    """By storage, the operator that wrote it after any launch."""

    def __init__(self) -> None:
        self._last: dict[int, str] = {}

    def wrote(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        """Note that an operator wrote these tensors."""
        for tensor in tensors:
            if torch._C._has_storage(tensor):  # sparse ones have none
                self._last[tensor.untyped_storage().data_ptr()] = name

    def of(self, plan: Plan, addresses: tuple[int, ...]) -> dict[int, str]:
        """The writers of what a launch at these addresses reads, by position.

        What it writes is its own from now on.
        """
        if not self._last:
            return {}
        starts = [address - offset for address, offset in zip(addresses, plan.offsets, strict=True)]
        found = {plan.positions[i]: self._last[starts[i]] for i in plan.reads if starts[i] in self._last}
        for i in plan.writes:
            self._last.pop(starts[i], None)
        return found
