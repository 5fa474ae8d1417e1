"""Three small kernels recorded for sm_80, and a builder whose compiler has a fault in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import triton
import triton.language as tl
from test_store import INFO
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tracing import store
from tracing.analyze.passes import compilation, passes_of
from tracing.analyze.probes import Compiled
from tracing.analyze.source_map import artefacts
from tracing.compiler.child import in_child
from tracing.compiler.resume import Place, resume
from tracing.compiler.symbols import function
from tracing.compiler.variants import Variants
from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Compilation, PassRecord
from tracing.record.derive import derive
from tracing.record.passes import PassRecorder


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


SOURCES = {
    "softmax": lambda: _source(softmax, "*fp32 *fp32 i32 i32", BLOCK=256),
    "matmul": lambda: _source(matmul, "*fp16 *fp16 *fp32 i32 i32 i32 i32", BLOCK=32),
    "attention": lambda: _source(attention, "*fp16 *fp16 *fp16 *fp32 i32", BLOCK=32, D=32),
}


def record(runs: Path, *kernels: str) -> store.Run:
    """A run with the passes of these kernels, or of all.

    They are compiled in a child, which leaves this process as a command's is: it has compiled nothing.
    """

    def compile_all() -> str:
        triton.knobs.compilation.always_compile = True
        here = msgspec.structs.replace(INFO.environment, triton=installed("triton"))
        writer = store.create(runs, msgspec.structs.replace(INFO, environment=here))
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

    def variants(self, last: str) -> Variants:
        return Variants(self.compilation, self.passes, self.run.text, self.recorded, last=last, seconds=60)

    def resumed(
        self,
        ir: str,
        stage: str,
        index: int,
        *,
        drop: Collection[int] = (),
        last: str = "ptx",
        observer: Any = None,
    ) -> dict[str, str | bytes]:
        """Triton's artefacts from `ir`, which stands before pass `index` of `stage`."""
        place = Place(ir, stage, index)
        return resume(self.compilation, place, last=last, drop=drop, observer=observer)

    def llvm_alone(self) -> dict[str, str | bytes]:
        """From the last MLIR pass on."""
        last = self.passes[-1]
        return self.resumed(self.run.text(last.before), last.stage, last.index)

    def index(self, name: str) -> int:
        """The last pass of that name that changed the IR."""
        return [one.index for one in self.passes if one.name == name and one.changed][-1]


def subject(run: store.Run, kernel: str) -> Subject:
    chosen = compilation(run, kernel)
    contents = {
        stage: run.bytes(blob) if stage == "cubin" else run.text(blob)
        for stage, blob in artefacts(run, chosen).items()
    }
    return Subject(run, chosen, passes_of(run, chosen), contents)


class FaultyBuilder:
    """Builds a kernel with a compiler that edits the IR behind one of its passes, whenever that pass runs."""

    assemblers: Sequence[str] = ()

    def __init__(self, subject: Subject, faulty: int, edit: Callable[[str], str], last: str) -> None:
        self.subject, self.faulty, self.edit, self.last = subject, faulty, edit, last

    def without(self, dropped: frozenset[int]) -> Compiled:
        ended = in_child(lambda: self._compiled(dropped), 60)
        return Compiled(ended.result or {}, ended.failure)

    def limited(self, limit: int | None) -> Compiled:
        raise AssertionError("these faults are MLIR's")

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        raise AssertionError("these faults are MLIR's")

    def _compiled(self, dropped: frozenset[int]) -> dict[str, str | bytes]:
        passes, resumed = self.subject.passes, self.subject.resumed
        start, fault = passes[min({self.faulty, *dropped})], passes[self.faulty]
        ir = self.subject.run.text(start.before)
        if self.faulty in dropped:
            return resumed(ir, start.stage, start.index, drop=dropped, last=self.last)
        seen = _After(self.faulty)
        resumed(ir, start.stage, start.index, drop=dropped, last=fault.stage, observer=seen)
        edited = self.edit(seen.text)
        assert edited != seen.text, "there was nothing to edit"
        return resumed(edited, fault.stage, self.faulty + 1, drop=dropped, last=self.last)


class _After:
    def __init__(self, index: int) -> None:
        self.index, self.text = index, ""

    def before(self, step: Any, module: Any) -> None: ...

    def after(self, step: Any, module: Any, wall_ms: float) -> None:
        if step.index == self.index:
            self.text = module.str()

    def artefact(self, stage: str, content: object, wall_ms: float) -> None: ...

    def ended(self) -> None: ...


def _settable() -> bool:
    try:
        return bool(function("LLVMParseCommandLineOptions", None))
    except Problem:
        return False


EXPORTED = _settable()
needs_llvm_options = pytest.mark.skipif(not EXPORTED, reason="this libtriton is stripped: it has no symbols")


class FaultyLlvm:
    """Builds a kernel with an LLVM that turns every maximum into a minimum when a pass of it runs first."""

    assemblers: Sequence[str] = ()

    def __init__(self, subject: Subject, faulty: str) -> None:
        self.subject, self.variants = subject, subject.variants("ptx")
        names = self.variants.limited(None).result["passes"].splitlines()
        self.faulty = [name.split()[0] for name in names].index(faulty) + 1

    def without(self, dropped: frozenset[int]) -> Compiled:
        ended = self.variants.without(dropped)
        return _minimal(Compiled(ended.result or {}, ended.failure))

    def limited(self, limit: int | None) -> Compiled:
        ended = self.variants.limited(limit)
        made = Compiled(ended.result or {}, ended.failure)
        return _minimal(made) if limit is None or limit >= self.faulty else made

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        raise AssertionError("this fault is LLVM's")


def _minimal(made: Compiled) -> Compiled:
    if made.failure:
        return made
    return replace(
        made, artefacts={**made.artefacts, "ptx": str(made.artefacts["ptx"]).replace("max.", "min.")}
    )
