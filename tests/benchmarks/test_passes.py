"""What recording every compiler pass costs: time, and bytes on disk against the output of MLIR_ENABLE_DUMP.

Printed, never asserted: machines differ. Both sides of a ratio are measured in one run, alternately.
"""

from __future__ import annotations

import functools
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import tutorial_kernels
from data import kernels
from handmade.records import new_run

from tracing.model import Derivation
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.store import Run
from tracing.virtual_gpu import virtual_gpu

ROUNDS = 9
TARGET = "sm_90"


def milliseconds(kernel: str, context: AbstractContextManager[object]) -> float:
    with context:
        started = time.perf_counter()
        kernels.compiled(kernel, TARGET)
        return (time.perf_counter() - started) * 1e3


@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_compile_time_with_the_recorder_over_without(kernel: str, tmp_path: Path) -> None:
    print(f"\n{kernel}: {costs(lambda: bool(kernels.compiled(kernel, TARGET)), tmp_path)}")


def test_compile_time_of_the_tutorials_kernels_with_the_recorder_over_without(tmp_path: Path) -> None:
    folder = os.environ.get("TUTORIALS")
    if folder is None:
        pytest.skip("TUTORIALS names no folder with Triton's tutorials")
    with virtual_gpu(TARGET, execute=False):
        for name, compile in tutorial_kernels.compiles(Path(folder)).items():
            print(f"\n{name}: {costs(compile, tmp_path / name)}")


def costs(compile: Callable[[], object], runs: Path) -> str:
    """The compile of a kernel, and what recording it and deriving its IR take, as ratios to that.

    By the clock, and in CPU time of this process and its children, which a busy machine changes less.
    """
    rounds = []
    for number in range(ROUNDS + 1):
        capturing, printing = (new_run(runs / f"{number}-{what}") for what in ("capture", "during"))
        plain = timed(compile, nullcontext())
        recorded = timed(compile, PassRecorder(capturing))
        printed = timed(compile, PassRecorder(printing, print_ir=True))
        deriving = timed(functools.partial(derive, capturing.path), nullcontext())
        rounds.append((plain, recorded, printed, deriving))
        assert not any(one.differs for one in Run(capturing.path).records(Derivation))
    kept = rounds[1:]  # the first loads LLVM's targets
    wall, cpu = ([statistics.median(one[at][clock] for one in kept) for at in range(4)] for clock in range(2))
    ratios = [f"{w / wall[0]:.2f}x (CPU {c / cpu[0]:.2f}x)" for w, c in zip(wall[1:], cpu[1:], strict=True)]
    return f"{wall[0]:.0f} ms; recorded {ratios[0]}, --ir during {ratios[1]}, deriving it {ratios[2]}"


def timed(call: Callable[[], object], context: AbstractContextManager[object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of the CPU."""
    with context:
        started, before = time.perf_counter(), cpu_seconds()
        call()
        wall, cpu = time.perf_counter() - started, cpu_seconds() - before
    return wall * 1e3, cpu * 1e3


def cpu_seconds() -> float:
    """What this process and its ended children have taken of the CPU."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def test_time_of_deriving_the_ir_over_that_of_the_compilations(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        compiling = sum(milliseconds(kernel, nullcontext()) for kernel in [*kernels.KERNELS] * ROUNDS)
    started = time.perf_counter()
    derived = derive(writer.path)
    deriving = (time.perf_counter() - started) * 1e3
    print(
        f"\n{len(derived)} compilations: {compiling:.0f} ms; "
        f"their IR derived afterwards, on {os.cpu_count()} cores: {deriving / compiling:.2f}x"
    )
    assert not any(one.differs for one in derived)


def test_bytes_on_disk_against_a_raw_dump(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with PassRecorder(writer):
        compiled = [kernels.compiled(kernel, TARGET) for kernel in kernels.KERNELS]
    artefacts = bytes_below(writer.path)
    derive(writer.path)

    stored = bytes_below(writer.path)
    raw = sum(map(dumped_bytes, kernels.KERNELS))
    print(f"\n{raw / 1e6:.1f} MB dumped; 1/{raw / (stored - artefacts):.0f} of it for the same IR")
    print(
        "  with sources, pass records and artefacts, which are in no dump, "
        f"{stored / 1e3:.0f} kB: 1/{raw / stored:.0f}"
    )
    assert len(compiled) == len(kernels.KERNELS) and raw > stored


def bytes_below(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def dumped_bytes(kernel: str) -> int:
    command = f"from data import kernels; kernels.compiled({kernel!r}, {TARGET!r})"
    settings = {**os.environ, "MLIR_ENABLE_DUMP": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", command], env=settings, capture_output=True, check=True)
    return len(done.stderr)
