"""A kernel in Gluon: layouts are the author's, and so is shared memory."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource


@gluon.jit
def reversed_softmax(x_ptr, out_ptr, columns, BLOCK: gl.constexpr, THREADS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [THREADS], [4], [0])
    other: gl.constexpr = gl.BlockedLayout([1], [THREADS], [4], [0])
    row = gl.program_id(0) * columns
    offsets = gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + row + offsets, mask=offsets < columns, other=float("-inf"))
    shared = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    shared.store(gl.exp(x - gl.max(x, 0)))
    x = shared.load(other)
    offsets = gl.arange(0, BLOCK, layout=other)
    gl.store(out_ptr + row + columns - 1 - offsets, x / gl.sum(x, 0), mask=offsets < columns)


def source(threads: int = 32) -> GluonASTSource:
    """The kernel as `triton.compile` takes it, for a device whose warps have that many threads."""
    constants = {"BLOCK": 1024, "THREADS": threads}
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "columns": "i32"} | dict.fromkeys(constants, "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    return GluonASTSource(reversed_softmax, signature=types, constexprs=constants, attrs=aligned)
