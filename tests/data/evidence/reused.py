"""An operator that returns its input without saying so: generated code reuses memory that is still read.

declared -- what it returns is a clone, as its schema says
wrapped  -- another tool wraps the launches of generated code after recording began
"""

import torch
from torch._functorch import config as functorch
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from tracing import Workload

if not hasattr(torch.ops.evidence, "same"):  # a process may load this file repeatedly
    _LIB = torch.library.Library("evidence", "FRAGMENT")
    _LIB.define("same(Tensor x, bool clone) -> Tensor")
    _LIB.define("opaque(Tensor x) -> Tensor")
    for _device in ("CPU", "CUDA"):
        _LIB.impl("same", lambda x, clone: x.clone() if clone else x.detach(), _device)
        _LIB.impl("opaque", lambda x: x + 1, _device)
    torch.library.register_fake("evidence::same", lambda x, clone: torch.empty_like(x), lib=_LIB)
    torch.library.register_fake("evidence::opaque", lambda x: torch.empty_like(x), lib=_LIB)
    torch.evidence_library = _LIB  # it is gone when nobody holds it


functorch.error_on_custom_op_aliasing = False  # torch refuses such an operator where CI is set


def wrap_launches() -> None:
    original = CachingAutotuner.run

    def run(autotuner: CachingAutotuner, *args: object, **kwargs: object) -> object:
        return original(autotuner, *args, **kwargs)

    CachingAutotuner.run = run


def build(device: str, declared: bool = False, wrapped: bool = False) -> Workload:
    if wrapped:
        wrap_launches()

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = torch.ops.evidence.same(torch.sin(x), declared)
        return torch.cos(torch.ops.evidence.opaque(kept[:1])) + x, kept

    return Workload(fn, (torch.rand(8, 16, device=device),))
