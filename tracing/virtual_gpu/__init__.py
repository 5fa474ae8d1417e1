"""A Triton driver without a GPU: kernels are compiled for a real target and executed on CPU tensors.

Inside `virtual_gpu()` a program takes the same path as on a machine with a GPU: `torch.compile` with
Inductor's Triton kernels, `fn[grid](...)`, autotuners, `CompiledKernel.asm` down to the cubin, launch hooks
and their metadata. Two things differ: Triton's interpreter executes launches, and nothing is measured, so
an autotuner takes its first configuration that fits the target. Values are right; times are meaningless.

Caches: Triton's cache contains ordinary kernels of the target. Inductor's graphs have a separate cache key
tag, and its kernels a device index that no machine has, so they are never confused with those of a real
device or of another target; autotuning results are not written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracing.interpreter.guard import functions_guarded
from tracing.model.chips import DEFAULT_TARGET
from tracing.upstream.torch.autograd import start_engine_without_gpu
from tracing.upstream.torch.dynamo import FramesSkipped
from tracing.upstream.triton.backends import GPUTarget
from tracing.virtual_gpu import blas, driver, half, inductor, placement, queries, spawned
from tracing.virtual_gpu.chips import parse_target
from tracing.virtual_gpu.driver import is_active as is_active
from tracing.virtual_gpu.unexecuted import results_not_judged

# Code that runs inside of torch's and Triton's calls, which Dynamo must not compile. It uses `queries`.
_PACKAGE = Path(__file__).parent
_SKIPPED = [f"{_PACKAGE / name}.py" for name in ("benchmarks", "driver", "half", "placement", "streams")]
_SKIPPED.append(f"{_PACKAGE.parent / 'interpreter'}/")


@contextmanager
def virtual_gpu(target: str = DEFAULT_TARGET, *, execute: bool = True) -> Iterator[GPUTarget]:
    """Compile Triton kernels for `target` and execute them on CPU tensors, while active.

    target  -- as for parse_target
    execute -- False: launches are compiled and checked against the target, but not executed. Outputs stay
               unchanged, and the program's comparisons of tensors succeed

    Everything that is patched is restored on exit, also after an exception. Functions that
    torch.compile compiled before are recompiled inside, and the reverse afterwards.
    Cost: see tracing.interpreter.execute; keep shapes and grids small.
    FlexAttention has its Triton templates, forward and backward; so have products and convolutions with
    max-autotune, where the first template is taken, and nothing is measured. Not covered: cooperative grids,
    whose programs wait for one another. Kernels are compiled in this process only.

    Raises Problem for an unknown target, and if a virtual GPU is active already.
    """
    parsed = parse_target(target)
    start_engine_without_gpu()
    with (
        FramesSkipped(_SKIPPED),
        driver.installed(target, parsed, execute=execute),
        inductor.installed(target, parsed),
        blas.installed(),
        half.installed(),
        queries.installed(target, parsed),
        placement.installed(),
        functions_guarded(),
        spawned.reported(),
        contextlib.nullcontext() if execute else results_not_judged(),
    ):
        yield parsed
