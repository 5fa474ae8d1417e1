"""What no program may rely on, changed on purpose, so that a fault which rests on it shows at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch._inductor.config as inductor
from torch.utils._python_dispatch import TorchDispatchMode

from tracing.interpreter import permuted

# bytes of which uninitialised memory consists: zeros, NaN in every floating dtype, large numbers, small ones
PATTERNS = (0x00, 0xFF, 0x7B, 0x01)
_EMPTY = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
}
_ALLOCATORS = ("_empty_strided_cpu", "_empty_strided_cuda", "_empty_strided_xpu")


class Perturbation:
    """Entered around a series of runs; `of(n)` around each."""

    def __init__(self) -> None:
        self._pattern = PATTERNS[0]
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Perturbation:
        # generated code keeps the allocators that it found when it was loaded: they are replaced before
        with contextlib.ExitStack() as stack:
            guards = torch._C._dynamo.guards
            for name in _ALLOCATORS:
                if allocate := getattr(guards, name, None):
                    stack.enter_context(mock.patch.object(guards, name, self._poisoning(allocate)))
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    @contextlib.contextmanager
    def of(self, run: int) -> Iterator[None]:
        """Inside, memory starts as pattern `run`; but for run 0, other autotune winners and program orders.

        Autotuning takes the slowest configuration in odd runs and a random one in even runs. Programs run in
        another order on the virtual GPU alone: a GPU has its own.
        """
        self._pattern = PATTERNS[run % len(PATTERNS)]
        with contextlib.ExitStack() as stack:
            stack.enter_context(_Poison(self._fill))
            if run:
                winner = "inverse" if run % 2 else "random"
                stack.enter_context(inductor.patch({"test_configs.distort_benchmarking_result": winner}))
                stack.enter_context(permuted(run))
            yield

    def _poisoning(self, allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def poisoned(*args: Any) -> torch.Tensor:
            return self._fill(allocate(*args))

        return poisoned

    def _fill(self, tensor: torch.Tensor) -> torch.Tensor:
        # the whole storage, gaps between strides too; no operator of the program wrote this
        with torch._C._DisableTorchDispatch():
            if tensor.device.type != "meta" and tensor.untyped_storage().nbytes():
                torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).fill_(
                    self._pattern
                )
        return tensor


class _Poison(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    def __init__(self, fill: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self._fill = fill

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # so that torch.compile still compiles

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _EMPTY and type(made) is torch.Tensor:
            self._fill(made)
        return made
