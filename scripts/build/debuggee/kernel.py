"""Compile one kernel for sm_90, without a GPU, and print the size of the cubin."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit  # type: ignore[untyped-decorator]
def copy(x, y, n, BLOCK: tl.constexpr) -> None:  # type: ignore[no-untyped-def]  # x, y: pointers
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)


if __name__ == "__main__":
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(copy, signature, {"BLOCK": 1024})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    print(".target sm_90" in compiled.asm["ptx"], len(compiled.asm["cubin"]))
