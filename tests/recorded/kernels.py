"""Records three small kernels for sm_80."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import triton
import triton.language as tl
from handmade.records import INFO
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tracing import store
from tracing.analyze.passes.compilations import compilation
from tracing.analyze.passes.pass_table import passes_of
from tracing.analyze.passes.source_map import artefacts
from tracing.compiler.child import in_child
from tracing.compiler.history import history
from tracing.compiler.resume import ResumePoint, resume
from tracing.compiler.symbols import function
from tracing.compiler.variants import Variants
from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder


@triton.jit
def softmax(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + columns, mask=columns < n, other=-float("inf"))
    y = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + tl.program_id(0) * stride + columns, y / tl.sum(y, 0), mask=columns < n)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, stride_a, stride_b, stride_c, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    a = a_ptr + m[:, None] * stride_a + k[None, :]
    b = b_ptr + k[:, None] * stride_b + n[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK)):
        total = tl.dot(tl.load(a), tl.load(b), total)
        a += BLOCK
        b += BLOCK * stride_b
    tl.store(c_ptr + m[:, None] * stride_c + n[None, :], total)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, N, BLOCK: tl.constexpr, D: tl.constexpr):
    m, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    n = tl.arange(0, BLOCK)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, D), tl.float32)
    for start in range(0, N, BLOCK):
        score = tl.dot(q, tl.load(k_ptr + (start + n)[None, :] * D + d[:, None]))
        larger = tl.maximum(most, tl.max(score, 1))
        p = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(most - larger)
        weight = weight * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + (start + n)[:, None] * D + d[None, :])
        total = tl.dot(p.to(tl.float16), v, total * shrink[:, None])
        most = larger
    tl.store(o_ptr + m[:, None] * D + d[None, :], total / weight[:, None])


def _source(kernel: Any, types: str, **constants: int) -> ASTSource:
    names = kernel.arg_names
    signature = dict(zip(names, types.split(), strict=False)) | dict.fromkeys(constants, "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(types.split()))}
    return ASTSource(kernel, signature, constants, aligned)


INFO_HERE = msgspec.structs.replace(
    INFO, environment=msgspec.structs.replace(INFO.environment, triton=installed("triton"))
)
SOURCES = {
    "softmax": lambda: _source(softmax, "*fp32 *fp32 i32 i32", BLOCK=256),
    "matmul": lambda: _source(matmul, "*fp16 *fp16 *fp32 i32 i32 i32 i32", BLOCK=32),
    "attention": lambda: _source(attention, "*fp16 *fp16 *fp16 *fp32 i32", BLOCK=32, D=32),
}


def record(runs: Path, *kernels: str) -> store.Run:
    """A run with the passes of these kernels, or of all.

    A child process compiles them, so that this process has compiled nothing, like a command's process.
    """

    def compile_all() -> str:
        triton.knobs.compilation.always_compile = True
        writer = store.create(runs, INFO_HERE)
        with PassRecorder(writer):
            for kernel in kernels or SOURCES:
                triton.compile(SOURCES[kernel](), target=GPUTarget("cuda", 80, 32), options={"num_stages": 3})
        derive(writer.path)
        writer.close()
        return str(writer.path)

    ended = in_child(compile_all, 120)
    assert not ended.failure, ended
    return store.Run(Path(ended.result))


@dataclass(frozen=True)
class Subject:
    """One recorded kernel."""

    run: store.Run
    compilation: Compilation
    passes: Sequence[PassRecord]
    recorded: Mapping[str, str | bytes]

    @property
    def source(self) -> str:
        return self.run.text(self.compilation.source)

    def variants(self, last: str) -> Variants:
        happened = history(self.compilation, self.source, last=last, seconds=60)
        return Variants(self.compilation, self.source, happened, last=last, seconds=60)

    def from_mlir(self) -> dict[str, str | bytes]:
        """The artefacts of a compilation that resumes after the last MLIR pass."""
        last = self.passes[-1]
        return resume(
            self.compilation, ResumePoint(self.run.text(last.before), last.stage, last.index), last="ptx"
        )


def subject(run: store.Run, kernel: str) -> Subject:
    chosen = compilation(run, kernel)
    contents = {
        stage: run.bytes(blob) if stage == "cubin" else run.text(blob)
        for stage, blob in artefacts(run, chosen).items()
    }
    return Subject(run, chosen, passes_of(run, chosen), contents)


def _settable() -> bool:
    try:
        return bool(function("LLVMParseCommandLineOptions", None))
    except Problem:
        return False


EXPORTED = _settable()
needs_llvm_options = pytest.mark.skipif(not EXPORTED, reason="this libtriton is stripped: it has no symbols")
