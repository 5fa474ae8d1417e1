"""Operators that a program defines by torch.library, their formulas of gradients, and their errors."""

from __future__ import annotations

from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS, CustomOpDef
from torch._ops import OpOverload, OpOverloadPacket

from tracing.upstream.contract import require
from tracing.upstream.python_functions import python_function
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


def formula_line(target: Any) -> str | None:
    """Where the gradient formula of an operator of the program is, "train.py:30"; None: it has none.

    "": its line is not known, as of one in C++, or of an operator that `torch.library.define` made.
    """
    if custom_operator(target) is None or not isinstance(target, OpOverload):
        return None
    definition = OPDEFS.get(target._schema.name)
    if definition is None:
        name = ".".join(filter(None, (target._schema.name, target._schema.overload_name)))
        return "" if torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd") else None
    if definition._backward_fn is None:
        return None
    code = getattr(python_function(definition._backward_fn), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code is not None else ""


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""
    require(_LIBRARY.is_dir(), f"the folder of torch.library's own code, {_LIBRARY}")
    require(str(torch.ops.aten.add) == "aten.add", "an operator's text is NAMESPACE.NAME")
    names = CustomOpDef.__init__.__code__.co_names
    require("_backward_fn" in names and "OPDEFS" in names, "the formulas of gradients that operators have")
    require(torch.ops.aten.add.Tensor.overloadpacket is torch.ops.aten.add, "an overload knows its operator")
