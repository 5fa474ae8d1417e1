"""Dispatch modes: a base class, the stack of a thread, and switches that disable modes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._dynamo.convert_frame import ConvertFrame
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from tracing.upstream.contract import require
from tracing.upstream.patch import Method, patched

# Context managers, 0.2 µs each. While one is entered, calls on this thread bypass what its comment names:
dispatch_disabled = torch._C._DisableTorchDispatch  # dispatch modes and __torch_dispatch__
functions_disabled = torch._C.DisableTorchFunction  # function modes and __torch_function__
functorch_disabled = torch._C._DisableFuncTorch  # functorch's interpreters (vmap, grad)

# () -> the innermost interpreter of functorch on this thread, None outside of vmap, grad and functionalize.
functorch_interpreter = torch._C._functorch.peek_interpreter_stack


@contextmanager
def dispatch_without_modes() -> Iterator[None]:
    """While active, `__torch_dispatch__` is called, also inside of `dispatch_disabled`; no mode is active."""
    keys = torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot
    with ExitStack() as stack:
        for key in keys:
            stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
        stack.enter_context(_disable_current_modes())
        yield


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """A dispatch mode that sees every operator and lets torch.compile compile meanwhile.

    A subclass defines `__torch_dispatch__`.
    """

    # Without it torch refuses to run a higher order operator (cond, a Triton kernel in eager mode) at all.
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        # Otherwise torch.compile runs everything in eager mode while any dispatch mode is active.
        return True

    def __exit__(self, *exception: Any) -> None:
        # torch removes the innermost mode, whichever mode ends; recorders need not end in the reverse order
        above: list[TorchDispatchMode] = []
        while is_active(self) and (innermost := _get_current_dispatch_mode_stack()[-1]) is not self:
            above.insert(0, innermost)
            _pop_mode()
        _swap_flags(self, above)
        super().__exit__(*exception)  # type: ignore[no-untyped-call, unused-ignore]
        for mode in above:
            _push_mode(mode)


def _swap_flags(mode: TorchDispatchMode, above: Sequence[TorchDispatchMode]) -> None:
    # each mode restores the process-wide flags that it read at its start; the last one to end must restore
    # the flags of before the first
    names = [name for name, value in vars(mode).items() if name.startswith("old_") and value]
    heir = next((one for one in above if names and getattr(one, names[0], None)), None)
    for name in names if heir is not None else ():
        mine, theirs = getattr(mode, name), getattr(heir, name)
        mine[-1], theirs[-1] = theirs[-1], mine[-1]


def is_active(mode: TorchDispatchMode) -> bool:
    """True if this thread is in the mode; False inside of an operator that is written in Python."""
    return mode in _get_current_dispatch_mode_stack()


@contextmanager
def compiles_without_modes() -> Iterator[None]:
    """While active, torch.compile compiles without dispatch modes also inside of DistributedDataParallel.

    torch disables the modes around the compilation of every other frame. A mode that ignores its internals
    would receive functional tensors here, which raise "Attempting to use FunctionalTensor on its own".
    """

    def without_modes(original: Method) -> Method:
        def convert(self: object, *args: Any, **kwargs: Any) -> Any:
            with _disable_current_modes():
                return original(self, *args, **kwargs)

        return convert

    with patched(ConvertFrame, "__call__", without_modes):
        yield


@contextmanager
def pushed(mode: TorchDispatchMode) -> Iterator[None]:
    """While active, this thread is in the mode. Unlike `with mode`, no flag of the whole process is set."""
    _push_mode(mode)
    try:
        yield
    finally:
        _pop_mode()


def contract() -> None:
    """Raise Broken or another error if torch or Triton has changed what this file relies on."""
    seen: list[str] = []

    class Seeing(OperatorMode):  # type: ignore[no-untyped-call, unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.name())
            return func(*args, **(kwargs or {}))

    x, mode = torch.ones(1), Seeing()  # type: ignore[no-untyped-call, unused-ignore]
    with pushed(mode):
        require(is_active(mode), "a mode on the stack while it is pushed")
        x + 1
        with dispatch_disabled(), functions_disabled(), functorch_disabled():
            x + 1
    require(seen == ["aten::add.Tensor"], f"one operator seen by the mode, not {seen}")
    require(not is_active(mode), "an empty stack afterwards")

    def inside(row: torch.Tensor) -> torch.Tensor:
        require(functorch_interpreter() is not None, "an interpreter inside of vmap")
        return row

    torch.func.vmap(inside)(x)
    require(functorch_interpreter() is None, "no interpreter outside of it")
