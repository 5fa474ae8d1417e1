"""What an operator's fake implementation returns: torch.compile takes dtypes, shapes and strides from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tracing.upstream.contract import require
from tracing.upstream.torch.dispatch_modes import dispatch_disabled, dispatch_without_modes
from tracing.upstream.torch.pytrees import tree_map


def fake_result(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of an operator for tensors without contents like those given; no mode sees the call.

    Raises what the fake implementation raises.
    """
    with dispatch_without_modes(), FakeTensorMode() as mode:
        faked = tree_map(
            lambda one: mode.from_tensor(one) if isinstance(one, torch.Tensor) else one, (args, kwargs)
        )
        return func(*faked[0], **faked[1])


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    with dispatch_disabled():
        result = fake_result(torch.ops.aten.sum.dim_IntList, [torch.ones(2, 3), [1]], {})
    require((result.dtype, tuple(result.shape)) == (torch.float32, (2,)), "a result without contents")
