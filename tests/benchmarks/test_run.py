"""What `tracing run silu` costs, and which share of it is this project's own code.

Printed, never asserted: machines differ. Shares are of one run, under one profiler.
"""

from __future__ import annotations

import pstats
import subprocess
import sys
import time
from pathlib import Path

import tracing

OWN = str(Path(tracing.__file__).parent)
PROFILED = """
import cProfile, sys
sys.argv = ["tracing", "run", "silu", "--runs", sys.argv[1]]
from tracing import cli
profile = cProfile.Profile()
try:
    profile.runcall(cli.app, standalone_mode=False)
finally:
    profile.dump_stats(sys.argv[-1] + "/profile")
"""


def test_time_of_run_and_the_share_of_our_own_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tracing", "run", "silu", "--runs", str(tmp_path)]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall = time.perf_counter() - started
    subprocess.run([sys.executable, "-c", PROFILED, str(tmp_path)], check=False, capture_output=True)

    stats = pstats.Stats(str(tmp_path / "profile"))
    total = stats.total_tt  # type: ignore[attr-defined]
    rows = stats.stats  # type: ignore[attr-defined]
    own = sum(row[2] for (file, _, _), row in rows.items() if file.startswith(OWN))
    hooks = cumulative(rows, "record/launches/launch_recorder.py", ("before", "after", "_finish"))
    hooks += cumulative(rows, "record/operator_calls.py", ("before", "after"))
    interpreted = cumulative(rows, "interpreter/__init__.py", ("execute",))
    print(f"\ntracing run silu: {wall:.1f} s; under the profiler {total:.1f} s, of which")
    print(f"  {own / total:6.2%} in the lines of this project")
    print(f"  {hooks / total:6.2%} in the recording hooks, with all that they call (digests, disk)")
    print(f"  {interpreted / total:6.2%} in executing the kernels through Triton's interpreter")
    assert rows


def cumulative(
    rows: dict[tuple[str, int, str], tuple[float, ...]], file: str, names: tuple[str, ...]
) -> float:
    return sum(row[3] for (path, _, name), row in rows.items() if path.endswith(file) and name in names)
