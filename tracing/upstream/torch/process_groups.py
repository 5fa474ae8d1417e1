"""Process groups by the names that functional collectives carry."""

from __future__ import annotations

from typing import Any

import torch.distributed

from tracing.upstream.contract import require


def group_named(name: str) -> Any:
    """The process group of that name. Raises ImportError if torch was built without torch.distributed."""
    from torch._C._distributed_c10d import _resolve_process_group

    return _resolve_process_group(name)  # type: ignore[arg-type, unused-ignore]


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    if torch.distributed.is_available():
        from torch._C._distributed_c10d import _resolve_process_group

        require(callable(_resolve_process_group), "a function from names to process groups")
