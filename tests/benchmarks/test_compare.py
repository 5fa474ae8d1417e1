"""How fast two long runs are compared, and in how much memory, against a plain Python loop.

Synthetic launches of 20 kernels with 8 tensor arguments each, 2 of them written; their contents before a
launch differ between the runs, like uninitialised memory. Run it with

    python -m pytest -s tests/benchmarks/test_compare.py
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from handmade.records import new_run  # noqa: E402

from tracing import store  # noqa: E402
from tracing.analyze.compare.first_divergence import Comparison  # noqa: E402
from tracing.model import Argument, DigestBatch, Kernel, LaunchLine, Outcome, Signature, TensorMeta  # noqa: E402

ARGUMENTS, WRITTEN, KERNELS, LINE = 8, 2, 20, 512
META = TensorMeta((1024,), (1,), "float32", "cuda:0")


def write(folder: Path, launches: int, garbage: int, different: int | None = None) -> Path:
    """A run; `garbage` seeds what outputs held before; launch `different` computes something else."""
    writer = new_run(folder)
    roles = ["in"] * (ARGUMENTS - WRITTEN) + ["out"] * WRITTEN
    args = tuple(Argument(f"{role}_ptr{n}", role, META) for n, role in enumerate(roles))  # type: ignore[arg-type]
    for k in range(KERNELS):
        writer.append(Kernel(k, f"triton_poi_fused_{k}", f"{k:064x}", "cuda:90", 4, 3, 1, {}, {}))
        writer.append(Signature(k, k, (8, 1, 1), "forward", "cuda:0", args))
    values, rubbish = random.Random(0), random.Random(garbage)
    for start in range(0, launches, LINE):
        numbers = range(start, min(start + LINE, launches))
        writer.extend(
            [LaunchLine(i, i % KERNELS, 0, tuple((2 * i + j) % 97 for j in range(8))) for i in numbers]
        )
        writer.append(_digests(numbers, values, rubbish, different))
    writer.append(Outcome("passed", ""))
    writer.close()
    return writer.path


def _digests(
    numbers: range, values: random.Random, rubbish: random.Random, different: int | None
) -> DigestBatch:
    bits = []
    for i in numbers:
        words = [f"{values.getrandbits(128):032x}" for _ in range(ARGUMENTS)]
        if i == different:
            words[0] = "f" * 32
        inputs, after = words[:-WRITTEN], words[-WRITTEN:]
        bits += inputs + [f"{rubbish.getrandbits(128):032x}" for _ in after] + after
    patterns = [(tuple(range(ARGUMENTS)), tuple(range(ARGUMENTS - WRITTEN, ARGUMENTS)))]
    count = len(bits)
    return DigestBatch(
        list(numbers), patterns, [0] * len(numbers), "".join(bits), "abc" * count, [1] * count, [1.5] * count
    )


class Call:
    """One launch as the loop keeps it: its name, its grid and a dict of hashes before and after."""

    def __init__(self, launch: store.KernelLaunch) -> None:
        self.kernel_name, self.grid = launch.kernel_name, launch.grid
        self.arg_names = tuple(arg.name for arg in launch.args)
        self.pre_hashes = {
            n: arg.before.bits for n, arg in enumerate(launch.args) if arg.before and arg.reads
        }
        self.post_hashes = {
            n: arg.after.bits for n, arg in enumerate(launch.args) if arg.after and arg.writes
        }


def by_hand(a: store.Run, b: store.Run) -> int | None:
    """Both runs as lists, then launch by launch and hash by hash: the first that differs."""
    calls1, calls2 = ([Call(launch) for launch in run.launches()] for run in (a, b))
    for i, (call1, call2) in enumerate(zip(calls1, calls2, strict=True)):
        if call1.kernel_name != call2.kernel_name or call1.grid != call2.grid:
            return i
        for n in call1.pre_hashes:
            if call1.pre_hashes[n] != call2.pre_hashes.get(n):
                return i
        for n in call1.post_hashes:
            if call1.post_hashes[n] != call2.post_hashes.get(n):
                return i
    return None


def streamed(a: store.Run, b: store.Run) -> int | None:
    divergence = next(iter(Comparison(a, b)), None)
    return divergence.pair.launch.index if divergence else None


def measured(how: str, a: Path, b: Path) -> tuple[float, int, int | None]:
    """Seconds, peak bytes and what was found, in a process of its own."""
    command = [sys.executable, __file__, how, str(a), str(b)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, index = json.loads(done.stdout)
    return seconds, peak, index


@pytest.mark.parametrize("launches", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("where", ["nowhere", "in the middle"])
@pytest.mark.timeout(1800)
def test_compare(launches: int, where: str, tmp_path: Path) -> None:
    different = launches // 2 if where == "in the middle" else None
    a, b = write(tmp_path / "a", launches, 1), write(tmp_path / "b", launches, 2, different)

    seconds, peak, index = measured("streamed", a, b)
    line = f"{launches:>9,} launches, different {where}: {launches / seconds:,.0f} a second, {peak >> 20} MiB"
    by_hand_seconds, by_hand_peak, by_hand_found = measured("by_hand", a, b)
    line += f"; by hand {by_hand_seconds / seconds:.1f}x as long, {by_hand_peak >> 20} MiB"

    print(f"\n{line}")
    assert index == by_hand_found == different
    assert peak < 200 << 20


if __name__ == "__main__":
    runs = store.Run(Path(sys.argv[2])), store.Run(Path(sys.argv[3]))
    began = time.perf_counter()
    answer = {"streamed": streamed, "by_hand": by_hand}[sys.argv[1]](*runs)
    took = time.perf_counter() - began
    print(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, answer]))
