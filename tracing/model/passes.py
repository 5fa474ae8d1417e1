"""Compilations, their passes and their artefacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tracing.model.record import Blob, Record


class Compilation(Record, frozen=True, file="compilations"):
    """The compilation of one kernel, written before its first pass."""

    id: int  # order in this process, from 0
    kernel_name: str
    hash: str  # `metadata.hash`: that of `Kernel`
    target: str  # "cuda:90"
    options: Mapping[str, str]  # every option of the backend, each a Python literal
    source: Blob  # the IR that enters the first stage; recompiling it needs no Python source
    file: str | None = None  # where the kernel's Python source begins, "path:line"
    language: str = "triton"  # "gluon": it has no stage "ttir"
    first: str = "ttir"  # the first executed stage; a later one if an IR file was compiled
    constants: Mapping[str, str] = {}  # tl.constexpr arguments and specialised values, as in `Kernel`
    eager: bool = False  # compiled while the case ran in eager, for comparison
    block_locations: tuple[str, ...] = ()  # of the source's block arguments: its text lacks those of loops


class PassStart(Record, frozen=True, file="passes", compressed=True):
    """One pass, written before it runs: if nothing follows, the process died inside it."""

    compilation: int
    index: int  # order in the compilation, from 0
    stage: str  # "ttir", "ttgir", "llir"
    name: str  # "tritongpu-coalesce"
    adder: str  # the function that Triton's compiler.py called, "passes.ttgpuir.add_coalesce"
    arguments: tuple[str, ...]  # the arguments of that call after the pass manager
    pipeline: str  # text for `triton-opt --pass-pipeline`
    caller: str  # "path:line" in Triton's compiler.py


class PassEnd(Record, frozen=True, file="passends", compressed=True):
    """One pass that ended."""

    compilation: int
    index: int
    wall_ms: float


class PassIR(Record, frozen=True, file="passir", compressed=True):
    """The IR on one side of a pass, with locations; it changed nothing where both sides are one blob."""

    # the process that recorded the pass, "<host>-<rank>-<pid>": another one may have derived its IR
    process: str
    compilation: int
    index: int
    side: Literal["before", "after"]
    blob: Blob


class Derivation(Record, frozen=True, file="derivations"):
    """A compilation whose passes ran once more, so that their IR is known."""

    process: str
    compilation: int
    differs: str  # "": its artefacts equal the recorded ones; else the differences, or why it ended early


class StageArtefact(Record, frozen=True, file="artefacts"):
    """The output of one stage of a compilation: TTIR, TTGIR, LLIR, PTX, cubin, ..."""

    compilation: int
    stage: str  # the artefact's file name ending, "ttgir", "cubin"
    blob: Blob
    wall_ms: float


class LlvmPass(Record, frozen=True):
    """One pass of LLVM in one compilation."""

    index: int | None  # as opt-bisect-limit counts, from 1; None: LLVM never leaves it out
    stage: str  # "llir": the middle end; "ptx", "amdgcn": the code generator
    name: str  # "instcombine"
    unit: str  # the transformed unit: "softmax", "[module]", "function (softmax)"
    before: Blob  # LLVM IR of the module, or machine code of the function
    after: Blob | None = None  # None: LLVM prints no IR after this pass, or died inside it

    @property
    def changed(self) -> bool:
        """True if the pass is known to have changed the IR."""
        return self.after not in (None, self.before)


class LlvmPasses(Record, frozen=True, file="llvm", compressed=True):
    """LLVM's half of one compilation, run once more and printed pass by pass."""

    hash: str  # of the compilation
    passes: tuple[LlvmPass, ...]
    failure: str = ""  # how it ended, if it ended in the last of these passes
    differs: tuple[str, ...] = ()  # stages whose artefact differs from the recorded one


class PassRecord(Record, frozen=True):
    """One pass of one compilation, joined from its start and its end."""

    compilation: Compilation
    index: int
    stage: str
    name: str
    adder: str
    arguments: tuple[str, ...]
    pipeline: str
    caller: str
    before: Blob  # "": unknown, because it could not be derived
    after: Blob | None = None  # None: the process died inside this pass; "": not known
    wall_ms: float | None = None

    @property
    def changed(self) -> bool:
        """True if the pass is known to have changed the IR, its locations included."""
        return self.after != self.before and "" not in (self.before, self.after)
