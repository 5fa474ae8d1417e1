"""Operators that a program defines by torch.library, and their errors."""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from tracing.upstream.contract import require
from tracing.upstream.torch.operator_schemas import OWN_NAMESPACES

_LIBRARY = Path(torch.__file__).parent / "_library"  # what registers them, and calls what was registered


def files_of_operator(error: BaseException) -> list[str]:
    """The files of the frames that passed on an error, from torch.library's own on; [] if there is none."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    inside = [n for n, file in enumerate(files) if Path(file).parent == _LIBRARY]
    return files[inside[0] :] if inside else []


def custom_operator(target: Any) -> str | None:
    """The name of the operator of the program that a node calls, "mylib::mul"; None: of no such one."""
    packet = target.overloadpacket if isinstance(target, OpOverload) else target
    if not isinstance(packet, OpOverloadPacket):
        return None
    namespace, _, name = str(packet).partition(".")
    return None if namespace in OWN_NAMESPACES else f"{namespace}::{name}"


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require(_LIBRARY.is_dir(), f"the folder of torch.library's own code, {_LIBRARY}")
    require(str(torch.ops.aten.add) == "aten.add", "an operator's text is NAMESPACE.NAME")
    require(torch.ops.aten.add.Tensor.overloadpacket is torch.ops.aten.add, "an overload knows its operator")
