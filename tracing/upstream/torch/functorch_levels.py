"""The levels of torch.func on this thread: one of each vmap, grad or jvp that is being computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch
from torch._C import _autograd, _functorch
from torch.autograd import forward_ad

from tracing.upstream.contract import require


@contextmanager
def levels_restored() -> Iterator[None]:
    """Leaves the levels of torch.func, and the settings that they change, as they were.

    A graph that enters a level and raises does not leave it.
    """
    depth = _functorch.get_dynamic_layer_stack_depth()
    in_place = _functorch.get_inplace_requires_grad_allowed()
    forward, dual = torch._C._is_fwd_grad_enabled(), forward_ad._current_level
    no_hooks = _autograd._saved_tensors_hooks_get_disabled_error_message()
    try:
        yield
    finally:
        for _ in range(_functorch.get_dynamic_layer_stack_depth() - depth):
            with suppress(RuntimeError):  # torch 2.11 raises after it has removed some of them
                _functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        _functorch.set_inplace_requires_grad_allowed(in_place)
        torch._C._set_fwd_grad_enabled(forward)
        if no_hooks is None:
            _autograd._saved_tensors_hooks_enable()
        else:
            _autograd._saved_tensors_hooks_disable(no_hooks)
        if dual < 0:
            with suppress(RuntimeError):  # it was left
                torch._C._exit_dual_level(level=0)


def contract() -> None:
    """Raise Broken or another error if torch has changed what this file relies on."""

    def square(y: torch.Tensor) -> torch.Tensor:
        return (y * y).sum()

    x = torch.ones(2)
    with levels_restored():
        torch._C._set_fwd_grad_enabled(False)
        torch._C._enter_dual_level()
        _autograd._saved_tensors_hooks_disable("by a contract")
        _functorch.set_inplace_requires_grad_allowed(True)
        _functorch._grad_increment_nesting()
        _functorch._vmap_increment_nesting(2, "error")
    require(_functorch.get_dynamic_layer_stack_depth() == 0, "no level afterwards")
    message = _autograd._saved_tensors_hooks_get_disabled_error_message()
    require(message is None, f"hooks of saved tensors afterwards, not: {message}")
    require(not _functorch.get_inplace_requires_grad_allowed(), "in-place requires_grad refused afterwards")
    made = torch.func.jvp(torch.func.grad(square), (x,), (x,))
    require([one.tolist() for one in made] == [[2, 2], [2, 2]], "jvp and grad afterwards")
