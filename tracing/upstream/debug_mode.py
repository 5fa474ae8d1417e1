"""torch's DebugMode, its call of a Triton kernel, and its two hash functions."""

from __future__ import annotations

from torch.utils._debug_mode import DebugMode

try:
    from torch.utils._debug_mode._calls import _TritonKernelCall as TritonKernelCall
    from torch.utils._debug_mode._utils import _arg_to_str as argument_text
    from torch.utils._debug_mode._utils import hash_tensor_fn, norm_hash_fn
except ImportError:  # torch < 2.13: _debug_mode is one file, not a package
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

__all__ = ["DebugMode", "TritonKernelCall", "argument_text", "hash_tensor_fn", "norm_hash_fn"]
