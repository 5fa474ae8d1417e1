"""Kernels whose source is edited between two recordings, as a person edits a file and reruns it.

Recordings: A = plain; A2 = `# The kernels.` => `# The kernels,\n# of which none has changed.\n`

- literal [code] (B = `- 0.5` => `- 0.25`): code of scale; launch 0. A number in the kernel.
- constant [code] (B = `constexpr(2)` => `constexpr(3)`): code of scale; launch 0. A constant of the module.
- operation [code] (B = `tl.maximum(` => `tl.minimum(`): code of polish; launch 1. Another operation.
- helper [code] (B = `x + 3` => `x + 4`): code of polish; launch 1. A function that a helper calls.
- order [code] (B = `doubled(lifted(x))` => `lifted(doubled(x))`): code of polish; launch 1. A helper calls in
  another order.
- mask [code] (B = `at < n` => `at < n - 1`): code of cut; launch 2. A mask is one short.
- wider [code] (B = `at < n` => `at <= n`): code of cut; launch 2; hidden. A mask is one wider, which nobody
  notices.
- type [code] (B = `tl.float32)` => `tl.float16)`): code of cut; launch 2. A value is rounded to float16.
- default [code] (B = `TERM: tl.constexpr = 1` => `TERM: tl.constexpr = 2`): code of cut or configuration of
  cut; launch 2. The default of a constexpr.
- comment [code] (B = `# see above` => `# see below`): equal or code of scale; hidden. A comment in the
  kernel.
- twice [code] (B = `- 0.5` => `- 0.25 - 0.25`): code of scale; launch 0; hidden. Other code of equal results.
"""

import torch
import triton
import triton.language as tl

from tracing import Workload

FACTOR = tl.constexpr(2)


# The kernels.
@triton.jit
def scale(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(in_ptr + at) * FACTOR - 0.5)  # see above


@triton.jit
def doubled(x):
    return x * 2


@triton.jit
def lifted(x):
    return x + 3


@triton.jit
def polished(x):
    return doubled(lifted(x))


@triton.jit
def polish(in_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.maximum(polished(tl.load(in_ptr + at)), 8.0))


@triton.jit
def cut(in_ptr, out_ptr, n, BLOCK: tl.constexpr, TERM: tl.constexpr = 1):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = (tl.load(in_ptr + at) + TERM).to(tl.float32)
    tl.store(out_ptr + at, value, mask=at < n)


def build(device: str) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> torch.Tensor:
        scaled, polished, out = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(68, device=device)
        scale[(4,)](x, scaled, BLOCK=16)
        polish[(4,)](scaled, polished, BLOCK=16)
        cut[(4,)](polished, out[:64], 64, BLOCK=16)
        return out

    return Workload(lambda x: launches(x), (torch.rand(64, device=device),))
