"""Dropout as AOTAutograd traces it: by `aten::native_dropout`, which eager calls on a GPU only.

So does attention by its parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F

from tracing.upstream.contract import require, require_parameters
from tracing.upstream.patch import replaced
from tracing.upstream.torch.attention_parts import attention
from tracing.upstream.torch.dynamo import called_functions

_PLAIN = F.dropout


def _dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    if inplace or not training or p == 0 or not input.numel():
        return _PLAIN(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]


def _of_library(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    return _dropout(input, p, train)


# by the names that nodes of Dynamo's graphs have
TRACED_DROPOUT: Mapping[str, Callable[..., torch.Tensor]] = {
    "aten::dropout": _of_library,
    "torch.dropout": _of_library,
    "torch.nn.functional.dropout": _dropout,
    "torch._C._nn.scaled_dot_product_attention": attention,
}


@contextmanager
def dropout_as_traced() -> Iterator[None]:
    """While active, functions of torch in Python, as multi-head attention, call these functions, too."""
    with replaced(F, "dropout", _dropout), replaced(F, "scaled_dot_product_attention", attention):
        yield


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require_parameters(F.dropout, *inspect.signature(_dropout).parameters)

    def program(x: torch.Tensor) -> torch.Tensor:
        x = torch.dropout(F.dropout(x, 0.5), 0.5, True)
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    names = called_functions(program, torch.randn(1, 2, 4, 4))
    require({*names} == TRACED_DROPOUT.keys() - {"aten::dropout"}, f"a graph of dropout, not {names}")
