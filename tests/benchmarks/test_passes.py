"""What recording every compiler pass costs: time, and bytes on disk beside what MLIR_ENABLE_DUMP prints.

Printed, never asserted: machines differ. Both sides of a ratio are of one run, in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import zstandard
from data import kernels

from tracing.compiler.pipeline import observed
from tracing.model import Compilation
from tracing.record.passes import PassRecorder
from tracing.store import RunWriter

ROUNDS = 9
TARGET = "sm_90"


class Printing:
    """Does what no recorder of IR can do without: it prints the IR after every pass."""

    def __init__(self, compilation: Compilation, source: Any) -> None: ...

    def before(self, step: Any, module: Any) -> None: ...

    def after(self, step: Any, module: Any, wall_ms: float) -> None:
        module.str()

    def artefact(self, stage: str, content: object, wall_ms: float) -> None: ...

    def ended(self) -> None: ...


def milliseconds(kernel: str, context: AbstractContextManager[object]) -> float:
    with context:
        started = time.perf_counter()
        kernels.compiled(kernel, TARGET)
        return (time.perf_counter() - started) * 1e3


@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_compile_time_with_the_recorder_over_without(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    recorder = PassRecorder(RunWriter(tmp_path))
    milliseconds(kernel, recorder)  # the first compile loads LLVM's targets
    rounds = [
        (
            milliseconds(kernel, nullcontext()),
            milliseconds(kernel, observed(Printing)),
            milliseconds(kernel, recorder),
        )
        for _ in range(ROUNDS)
    ]
    plain, printed, recorded = map(statistics.median, zip(*rounds, strict=True))
    ratios = f"recorded {recorded / plain:.2f}×, IR only printed {printed / plain:.2f}×"
    print(f"\n{kernel}: {plain:.0f} ms; {ratios}")
    assert recorder.count == ROUNDS + 1


def test_bytes_on_disk_beside_a_raw_dump(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    with PassRecorder(RunWriter(tmp_path)):
        compiled = [kernels.compiled(kernel, TARGET) for kernel in kernels.KERNELS]

    stored = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    artefacts = [
        one if isinstance(one, bytes) else one.encode() for each in compiled for one in each.values()
    ]
    alone = sum(len(zstandard.compress(one)) for one in artefacts)
    raw = sum(map(dumped_bytes, kernels.KERNELS))
    print(f"\n{raw / 1e6:.1f} MB dumped, {stored / 1e3:.0f} kB stored: 1/{raw / stored:.0f}")
    print(f"  with all artefacts, which alone take {alone / 1e3:.0f} kB and are in no dump")
    assert raw > stored


def dumped_bytes(kernel: str) -> int:
    command = f"from data import kernels; kernels.compiled({kernel!r}, {TARGET!r})"
    settings = {**os.environ, "MLIR_ENABLE_DUMP": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", command], env=settings, capture_output=True, check=True)
    return len(done.stderr)
