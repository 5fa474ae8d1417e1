"""A launch for each member of a set, in the order in which Python happens to give them.

A2's members have other hashes.

- plain [set]: equal; hidden. Only the order differs.
- member [set]: missing of *. B's set has a member more, whose buffer is a result.
- scalar [set]: configuration of increase. One member has another number.
- sum [set]: order. Floats are added to one total in the order of the set.
- poked [set]: host; runs b. The host changes the buffer of one member before its second launch.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from tracing import Workload


class Name(str):
    """A name whose hash depends on the run, as a string's does from process to process."""

    reverse = False

    def __hash__(self) -> int:
        number = "abcdefgh".index(self)
        return 7 - number if Name.reverse else number


@triton.jit
def increase(ptr, term, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) + term)


@triton.jit
def double(ptr, term, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(ptr + at, tl.load(ptr + at) * 2 + term)


@triton.jit
def add(in_ptr, total_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(total_ptr + at, tl.load(total_ptr + at) * 1.25 + tl.load(in_ptr + at))


def build(device: str, fault: str = "none", variant: int = 0) -> Workload:
    @torch.compiler.disable
    def launches(x: torch.Tensor) -> dict[str, torch.Tensor]:
        Name.reverse = bool(variant)
        buffers = {letter: x[i] + 0 for i, letter in enumerate("abcd")}
        names = {Name(letter) for letter in ("abcd" if fault == "member" else "abc")}
        terms = {"b": 3.5} if fault == "scalar" else {}
        for name in names:
            increase[(1,)](buffers[str(name)], terms.get(str(name), 0.5), BLOCK=32)
        if fault == "poked":
            buffers["b"].numpy()[5] = 0.5
        for name in names:
            kernel: Any = double if name == "c" else increase
            kernel[(1,)](buffers[str(name)], 1.5, BLOCK=32)
        total = torch.zeros(32, device=device)
        for name in names if fault == "sum" else sorted(names, key=str):
            add[(1,)](buffers[str(name)], total, BLOCK=32)
        return {**buffers, "total": total}

    return Workload(lambda x: launches(x), (torch.rand(4, 32, device=device),))
