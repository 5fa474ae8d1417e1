"""Check that the virtual GPU works with the installed torch and Triton."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from tracing.upstream.inductor.autotuner import trial_method
from tracing.upstream.inductor.config import setting
from tracing.upstream.triton.driver import active_driver
from tracing.upstream.triton.knobs import LaunchExitHook
from tracing.virtual_gpu import virtual_gpu


def self_test() -> list[str]:
    """One line for each feature that does not work with this torch and this Triton; empty if all work.

    Compiles three small kernels: some 10 s with cold caches.
    """
    checks = (_check_direct_launch, _check_compiled, _check_restored)
    failures = {check.__name__.removeprefix("_check_"): _failure(check) for check in checks}
    return [f"{name}: {failure}" for name, failure in failures.items() if failure]


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _double_plus_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * 2 + 1, mask=offsets < n)


def _failure(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # a changed private interface may raise anything
        return f"{type(error).__name__}: {error}"


def _check_direct_launch() -> str:
    x = torch.randn(100, dtype=torch.bfloat16)
    y = torch.empty_like(x)
    with virtual_gpu():
        kernel = _double_plus_one[(2,)](x, y, 100, BLOCK=64)
    if "cubin" not in kernel.asm:
        return f"compiled to {', '.join(kernel.asm)}, not to a cubin"
    return "" if torch.equal(y, x * 2 + 1) else "bfloat16 results differ from torch's"


def _check_compiled() -> str:
    launched: list[object] = []
    x = torch.randn(8, 40)
    with virtual_gpu():
        hook = LaunchExitHook(launched.append)
        hook.join()
        try:
            actual = torch.compile(lambda x: torch.softmax(x, -1).exp())(x)
        finally:
            hook.leave()
    if not launched:
        return "torch.compile launched no Triton kernel that calls the launch hooks"
    return (
        "" if torch.allclose(actual, torch.softmax(x, -1).exp(), atol=1e-6) else "results differ from eager"
    )


def _check_restored() -> str:
    before = setting("cpu_backend"), active_driver(), trial_method()
    with virtual_gpu():
        pass
    after = setting("cpu_backend"), active_driver(), trial_method()
    return "" if before == after else "the patches were not undone"
