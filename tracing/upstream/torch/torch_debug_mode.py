"""torch's DebugMode, its call of a Triton kernel, and its two hash functions."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._debug_mode import DebugMode

from tracing.upstream.contract import require, require_methods, require_parameters

try:
    from torch.utils._debug_mode._calls import _TritonKernelCall as TritonKernelCall
    from torch.utils._debug_mode._utils import _arg_to_str as argument_text
    from torch.utils._debug_mode._utils import hash_tensor_fn, norm_hash_fn
except ImportError:  # pytorch #175357 ("refactor DebugMode") made one file, that of 2.11, a package
    from torch.utils._debug_mode import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        _arg_to_str as argument_text,
    )
    from torch.utils._debug_mode import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        _TritonKernelCall as TritonKernelCall,
    )
    from torch.utils._debug_mode import (  # type: ignore[attr-defined, no-redef, unused-ignore]
        hash_tensor_fn,
        norm_hash_fn,
    )

__all__ = ["DebugMode", "TritonKernelCall", "argument_text", "hash_tensor_fn", "norm_hash_fn", "tensor_memo"]


def tensor_memo(mode: DebugMode) -> Any:
    """The numbers that a mode gives to tensors, for `argument_text`; None if it numbers none."""
    return mode._tensor_memo if mode.record_ids else None


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    require_methods(DebugMode, "record_triton_kernel", "debug_string", "log_tensor_hashes", "record_outputs")
    require_parameters(DebugMode.log_tensor_hashes, "hash_fn", "hash_inputs")
    require_parameters(DebugMode.dispatch_hooks, "log_hook")
    require_parameters(TritonKernelCall.__init__, "kernel_name", "kwargs", "call_depth")
    mode = DebugMode(record_ids=True)  # type: ignore[no-untyped-call, unused-ignore]
    require(tensor_memo(mode) is not None, "the numbers of tensors")
    x = torch.ones(2)
    require("f32[2]" in str(argument_text(x, [], None)), "the text of a tensor with its dtype and shape")
    for function in (hash_tensor_fn, norm_hash_fn):
        require(isinstance(function(x, use_scalar=True), (int, float)), f"a number of {function.__name__}")
