"""The argument of a kernel from which a pointer is computed.

The dtype of a pointer's handle names it: Triton's interpreter passes the dtype on wherever it computes a
pointer from another one, so nothing is computed in addition. A pointer that is computed from several
arguments, or made of an integer or of loaded memory, has none.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from tracing.upstream.triton.interpreter import TensorHandle


class ArgumentPointer(tl.pointer_type):  # type: ignore[misc, unused-ignore]
    """The dtype of pointers that are computed from one argument; equal to the dtype without it."""

    def __init__(self, kind: Any, argument: str) -> None:
        super().__init__(kind.element_ty, kind.address_space, kind.const)
        self.argument = argument


def name_argument(value: Any, argument: str) -> Any:
    """The argument of a launch as a kernel receives it, of which its pointer, or its base, has the name."""
    handle = getattr(value, "handle", None)
    _name(getattr(handle, "base", handle), argument)  # of a tensor descriptor, or of a pointer
    return value


def argument_of(dtype: Any) -> str:
    """The argument from which pointers of a dtype are computed; empty: none, or several."""
    return dtype.argument if isinstance(dtype, ArgumentPointer) else ""


def as_chosen(result: Any, *sources: Any) -> Any:
    """The handle that holds elements of other handles; of pointers, without an argument unless all agree."""
    kind = result.dtype
    if isinstance(kind, ArgumentPointer) and {argument_of(one.dtype) for one in sources} != {kind.argument}:
        result.dtype = tl.pointer_type(kind.element_ty, kind.address_space, kind.const)
    return result


def as_cast(result: Any, source: Any) -> Any:
    """The handle of a cast of another handle; of a pointer to a pointer, with the same argument."""
    if argument := argument_of(source.dtype):
        _name(result, argument)
    return result


def _name(handle: Any, argument: str) -> None:
    if isinstance(handle, TensorHandle) and handle.dtype.is_ptr():
        handle.dtype = ArgumentPointer(handle.dtype, argument)
