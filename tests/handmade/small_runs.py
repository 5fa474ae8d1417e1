"""A hand-made run with every part that readers join: launches, digests, operators, passes, an outcome."""

from __future__ import annotations

from pathlib import Path

from handmade.records import INFO, compiled
from msgspec.structs import replace

from tracing import store
from tracing.digest.columns import Columns, Digested, packed
from tracing.model import (
    Argument,
    CallSite,
    Digest,
    FrameCompile,
    KeptTensor,
    Kernel,
    LaunchLine,
    LaunchTime,
    NotCovered,
    OperatorCall,
    OperatorSignature,
    Outcome,
    OutOfBounds,
    ReadVariable,
    Result,
    Signature,
    StageArtefact,
    Storage,
    TensorMeta,
    TensorValue,
    Winner,
)

META = TensorMeta((2,), (1,), "float32", "cpu")
IR = """#loc = loc("k.py":1:1)
module {
  tt.func public @k(%x: !tt.ptr<f32> loc("x"("k.py":1:1)), %n: i32 loc(unknown)) {
    %0 = tt.get_program_id x : i32 loc(#loc)
    %1 = "tt.addptr"(%x, %0) {"a\\22b" = 1 : i32} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
LLIR = "define void @k() {\n  ret void, !dbg !1\n}\n!1 = !DILocation(line: 1, scope: !2)\n"


def small_run(
    folder: Path, *, case: str | Path = "/case.py", kernel: str = "k", result: str = "b", failed: bool = True
) -> Path:
    """A run of four launches of one kernel, whose compilation has two passes.

    result -- a letter, of which the digest of the result consists
    failed -- the case failed; else its result differs from eager's
    """
    writer = store.create(folder, replace(INFO, path=str(case)))
    source = writer.blob("def k(x, n):\n    pass\nKERNEL = k\n")
    compiled(writer, kernel, IR, ("ttir", "first", IR.replace("%1", "%2")), ("ttgir", "second", None))
    for stage, text in {"ttir": IR, "llir": LLIR, "ptx": ".loc 1 1 1\n"}.items():
        writer.append(StageArtefact(0, stage, writer.blob(text), 1.5))
    writer.append(Kernel(0, kernel, f"00hash of {kernel}", "cuda:90", 4, 3, 1, {}, {}, module=source))
    args = (Argument("x", "in", META), Argument("n", value=2), Argument("y", "out", META))
    writer.append(Signature(0, 0, (1, 1, 1), "forward", "cpu", args))
    writer.append(CallSite(0, "case.py", 3, "forward"))
    writer.extend([Storage(5, 4096, 8), Storage(6, 8192, 8)])
    old, new = (Digest(letter * 32, letter * 6, l1=1.5) for letter in "ab")
    for index in range(4):
        writer.append(LaunchLine(index, 0, 0, (5, 6)))
        writer.append(LaunchTime(index, 10.5, 2.5))
        columns = Columns.of([old, old, new])
        writer.extend(list(packed([Digested(index, columns, 0, (0, 2), (2,))])))
    writer.append(FrameCompile("0/0", "forward", "case.py:3", operators=1))
    writer.append(KeptTensor(0, 0, "before", writer.blob(b"tensor")))
    writer.append(OutOfBounds(0, "x", "load", 2, (0, 0, 0), 4104, 4108, 1, inside=False, where="k.py:1"))
    writer.append(OperatorSignature(0, "aten::mm", "", (META,), (META,)))
    writer.append(OperatorCall(0, 1, 0, (5, 6)))
    writer.append(Result("output", TensorValue(META, Digest(result * 32))))
    writer.append(Winner("triton", "k", "6c1f", ("n=2",), {"BLOCK": 16}))
    writer.append(ReadVariable("WIDTH", "3"))
    writer.append(NotCovered("CUDA graphs", "none"))
    failure = Outcome("failed", "ValueError: no", "Traceback ...", "no")
    writer.append(failure if failed else Outcome("differs", "output differs"))
    writer.close()
    return writer.path
