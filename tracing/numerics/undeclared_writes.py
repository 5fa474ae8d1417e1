"""Finds the inputs that an operator of the program changes although its schema declares no write.

torch.compile orders and merges reads by what schemas declare, so such a write makes a correct compiler give
wrong results. Operators of torch itself are not observed: their schemas are tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tracing.digest.host import digest
from tracing.upstream.torch.custom_operators import custom_operator
from tracing.upstream.torch.operator_schemas import schema_of
from tracing.upstream.torch.pytrees import tree_leaves


class InputBits:
    """The bits of the inputs that an operator does not declare to write, before it is executed."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Cost: a digest of each such input; nothing for an operator of torch itself."""
        self.operator = custom_operator(func) or ""
        self._inputs: list[tuple[str, torch.Tensor, Any]] = []
        if self.operator:
            given = {one.name: value for one, value in zip(schema_of(func).arguments, args, strict=False)}
            self._take({**given, **kwargs}, {one.name for one in schema_of(func).arguments if _written(one)})

    def _take(self, given: Mapping[str, Any], declared: set[str]) -> None:
        for name, value in given.items():
            for leaf in tree_leaves(value) if name not in declared else ():
                if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and not leaf.is_quantized:
                    self._inputs.append((name, leaf, digest(leaf).bits))

    def changed(self) -> list[tuple[str, torch.Tensor]]:
        """Name and tensor of each input whose bits are others now."""
        return [(name, one) for name, one, before in self._inputs if digest(one).bits != before]


def _written(argument: Any) -> bool:
    return bool(argument.alias_info and argument.alias_info.is_write)
