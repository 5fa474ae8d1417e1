"""Faults planted into passes by name, in every run of the pass and in every process.

The report of `tracing bisect` on each fault is compared with its known culprit.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
import triton
from triton._C import libtriton

HERE = Path(__file__).parents[1]
COMPILER = HERE / "data" / "faulty_compiler"
JUDGE = HERE / "data" / "judge.py"
BINARIES = Path(triton.__file__).parent / "backends/nvidia/bin"
NVIDIA, AMD = "sm_80", "gfx942"
Outcome: TypeAlias = Literal["right", "wrong", "undecided, culprit named", "undecided, culprit missing"]
Edit: TypeAlias = tuple[tuple[str, str], ...]  # regular expressions, and the replacements of their matches

MINIMUM: Edit = (
    ("arith\\.maxnumf", "arith.minnumf"),
    ("llvm\\.intr\\.maxnum", "llvm.intr.minnum"),
)
ROOT: Edit = (("math\\.exp ", "math.sqrt "),)
ZERO: Edit = (("0xFF800000", "0.000000e+00"),)
PRODUCT: Edit = (("arith\\.divf", "arith.mulf"),)
OTHER_PROGRAM: Edit = (("tt\\.get_program_id x", "tt.get_program_id y"),)
NO_BARRIER: Edit = (("\\n *(?:nvvm\\.barrier|rocdl\\.s\\.barrier|rocdl\\.barrier)[^\\n]*", ""),)


@dataclass(frozen=True)
class Fault:
    """One faulty pass, on one target."""

    stage: str  # one of "ttir", "ttgir", "llir", "LLVM", "ptxas"
    culprit: str  # the pass, by its name
    target: str
    kernel: str  # of data/kernels.py
    what: str  # the property that data/judge.py checks
    given: str  # the judge's placeholder: "{ptx}" or "{ir}"
    variables: Mapping[str, str]
    does: str  # a description

    def __str__(self) -> str:
        return f"{self.stage}-{self.culprit}-{self.target}"


def _mlir(
    stage: str, culprits: str, kernel: str, what: str, edit: Edit, does: str, given: str = ""
) -> list[Fault]:
    # culprits: the pass's names for NVIDIA and for AMD, if they differ
    names = culprits.split("|")
    faults = []
    for target, culprit in zip((NVIDIA, AMD), (names[0], names[-1]), strict=True):
        fault = json.dumps({"pass": culprit, "edit": edit})
        variables = {"FAULT": fault, "PYTHONPATH": str(COMPILER)}
        artefact = given or ("{ptx}" if target == NVIDIA else "{amdgcn}")
        faults.append(Fault(stage, culprit, target, kernel, what, artefact, variables, does))
    return faults


def _llvm(name: str, culprit: str, *targets: str) -> list[Fault]:
    variables = {"FAULT_LLVM": f"{name}:llvm.maxnum.f32:llvm.minnum.f32"}
    return [
        Fault("LLVM", culprit, target, "softmax", "maximum", given, variables, "a maximum becomes a minimum")
        for target, given in ((NVIDIA, "{ptx}"), (AMD, "{amdgcn}"))
        if target in (targets or (NVIDIA, AMD))
    ]


def _ptxas() -> list[Fault]:
    variables = {
        "FAULT_PTXAS": "max.f32:min.f32",
        "REAL_PTXAS": str(BINARIES / "ptxas"),
        "TRITON_PTXAS_PATH": str(COMPILER / "ptxas"),
    }
    does = "its optimiser takes a minimum for a maximum"
    return [Fault("ptxas", "ptxas", NVIDIA, "softmax", "maximum-in-sass", "{cubin}", variables, does)]


_MAX, _EXP, _INF = "a maximum becomes a minimum", "exp becomes sqrt", "an infinity becomes zero"
ACCELERATE = "tritongpu-accelerate-matmul|tritonamdgpu-accelerate-matmul"
LOWER = "convert-triton-gpu-to-llvm|convert-triton-amdgpu-to-llvm"
FAULTS = [
    # a mandatory pass needs a judge of the IR between passes: {ir}
    *_mlir("ttir", "inline", "softmax", "maximum", MINIMUM, _MAX, "{ir}"),
    *_mlir("ttir", "canonicalize", "softmax", "infinity", ZERO, _INF),
    *_mlir("ttir", "triton-combine", "softmax", "exponential", ROOT, _EXP),
    *_mlir("ttir", "triton-reorder-broadcast", "softmax", "division", PRODUCT, "it multiplies"),
    *_mlir("ttir", "cse", "attention", "maximum", MINIMUM, _MAX),
    *_mlir("ttir", "triton-loop-unroll", "softmax", "program", OTHER_PROGRAM, "x is y"),
    *_mlir("ttgir", "convert-triton-to-tritongpu", "softmax", "maximum", MINIMUM, _MAX, "{ir}"),
    *_mlir("ttgir", "tritongpu-coalesce", "softmax", "maximum", MINIMUM, _MAX),
    *_mlir("ttgir", "tritongpu-remove-layout-conversions", "softmax", "exponential", ROOT, _EXP),
    *_mlir("ttgir", ACCELERATE, "attention", "maximum", MINIMUM, _MAX, "{ir}"),
    *_mlir("ttgir", "triton-licm", "attention", "exponential", ROOT, _EXP),
    *_mlir("ttgir", "tritongpu-pipeline|tritonamdgpu-pipeline", "attention", "maximum", MINIMUM, _MAX),
    *_mlir("ttgir", "tritongpu-reduce-data-duplication", "attention", "exponential", ROOT, _EXP),
    *_mlir("llir", "convert-scf-to-cf", "attention", "maximum", MINIMUM, _MAX, "{ir}"),
    *_mlir("llir", LOWER, "softmax", "barriers", NO_BARRIER, "a barrier is missing", "{ir}"),
    *_mlir("llir", "symbol-dce", "softmax", "maximum", MINIMUM, _MAX),
    *_llvm("GVNPass", "gvn"),
    *_llvm("InstCombinePass", "instcombine"),
    *_llvm("EarlyCSEPass", "early-cse"),
    *_ptxas(),
    *_llvm("SROAPass", "sroa", AMD),
]  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """The outcome of one fault."""

    fault: Fault
    outcome: Outcome
    named: str  # what was named, or the suspects
    seconds: float
    said: str


def environment(fault: Fault, library: Path) -> dict[str, str]:
    """The environment variables of every command; `library` is the compiled `faulty_llvm.c`."""
    preload = {"LD_PRELOAD": str(library)} if "FAULT_LLVM" in fault.variables else {}
    return {**os.environ, **fault.variables, **preload}


# The dynamic linker must know the functions that `faulty_llvm.c` replaces.
needs_exported_llvm = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(libtriton.__file__), "_ZN4llvm5Value7setNameERKNS_5TwineE"),
    reason="this Triton exports no functions of LLVM, as 3.6, so no library can replace one",
)


def build_library(folder: Path) -> Path:
    """Builds the shared library that makes passes of LLVM faulty."""
    library = folder / "faulty_llvm.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, COMPILER / "faulty_llvm.c"], check=True)
    return library


RECORD = """
import sys
from pathlib import Path
from data import kernels
from recorded.kernels import INFO_HERE
from tracing import store
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder

writer = store.create(Path(sys.argv[1]), INFO_HERE)
print(writer.path, flush=True)
with PassRecorder(writer):
    for kernel, target in zip(sys.argv[2::2], sys.argv[3::2]):
        try:
            kernels.compiled(kernel, target)
        except Exception as error:
            print(error, file=sys.stderr)
derive(writer.path)
writer.close()
"""


def recorded(runs: Path, variables: Mapping[str, str], *kernels: str) -> Path:
    """A run of kernels and targets in turn, recorded with a faulty compiler, which may crash the process."""
    path = os.pathsep.join(filter(None, [variables.get("PYTHONPATH", ""), str(HERE), str(HERE.parent)]))
    command = [sys.executable, "-c", RECORD, str(runs), *kernels]
    done = subprocess.run(
        command, env={**variables, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return Path(done.stdout.splitlines()[0])


def bisected(run: Path, fault: Fault, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `tracing bisect` on the fault."""
    judge = [sys.executable, str(JUDGE), fault.what, fault.given, "{stage}" if fault.given == "{ir}" else "-"]
    if fault.given == "{cubin}":
        judge.append(str(BINARIES / "nvdisasm"))
    command = [sys.executable, "-m", "tracing", "bisect", str(run), "--", *judge]
    return subprocess.run(command, env=dict(variables), capture_output=True, text=True, check=False)


def outcome(fault: Fault, done: subprocess.CompletedProcess[str]) -> tuple[Outcome, str]:
    """Whether the report of `tracing bisect` is right."""
    named = re.search(r"first bad with (\S+)", done.stdout)
    if done.returncode == 1 and named:
        is_it = named[1] == fault.culprit or (fault.stage == "ptxas" and "ptxas" in done.stdout)
        return ("right" if is_it else "wrong"), named[1]
    suspects = done.stdout.partition("reading IR distinguishes:")[2]
    lines = [line.strip() for line in suspects.splitlines() if line.startswith("    ")]
    named = any(fault.culprit in line.partition(":")[0] for line in lines)
    short = ", ".join(line.partition(" (#")[0].partition(":")[0] for line in lines)
    return ("undecided, culprit named" if named else "undecided, culprit missing"), short
