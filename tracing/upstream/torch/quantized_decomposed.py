"""Operators of PT2E quantization as functions in operators of ATen, which can be followed in float64.

Each refuses numbers of float64 itself. Left out: operators that read a tensor as a number of Python, as
`choose_qparams.tensor` does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tracing.upstream.contract import require

_MODULE = "torch.ao.quantization.fx._decomposed"  # it registers the operators
_NAMESPACE = "quantized_decomposed::"
_FOLLOWED = (
    "choose_qparams_per_token", "choose_qparams_per_token_asymmetric", "dequantize_per_channel",
    "dequantize_per_channel_group", "dequantize_per_tensor", "dequantize_per_token", "quantize_per_channel",
    "quantize_per_channel_group", "quantize_per_tensor", "quantize_per_token",
)  # fmt: skip


def quantization_parts(name: str) -> Callable[..., Any] | None:
    """The function by which an operator is implemented; None: it is no such operator.

    name -- "quantized_decomposed::quantize_per_tensor"
    """
    namespace, separator, operator = name.partition("::")
    if namespace + separator != _NAMESPACE or operator not in _FOLLOWED:
        return None
    return getattr(sys.modules.get(_MODULE), operator, None)


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    import_module(_MODULE)
    lost = [one for one in _FOLLOWED if quantization_parts(_NAMESPACE + one) is None]
    require(not lost, f"{_MODULE} with {', '.join(lost)}")
