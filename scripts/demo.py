"""Record one case with a sound and with a faulty compiler, find the difference, and name the faulty pass.

The fault is planted below the tool, by tests/data/faulty_compiler: after every run of `triton-combine` it replaces
each `math.exp` by `math.sqrt` in the IR. Neither `compare` nor `bisect` reads the variables that plant the fault.

Each command is printed as a user would type it, followed by what it prints. Exit status 0 if `compare` finds the
difference and `bisect` names a pass.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pins import Problem
from script import run

ROOT = Path(__file__).resolve().parent.parent
FAULT = {
    "FAULT": json.dumps({"pass": "triton-combine", "edit": [["math\\.exp ", "math.sqrt "]]}),
    "PYTHONPATH": str(ROOT / "tests/data/faulty_compiler"),
}
KERNEL = "triton_poi_fused_mul_sigmoid_1#1"
JUDGE = ("--", "grep", "-q", "ex2", "{ptx}")  # the exponential of PTX is ex2


def demo(runs: Path) -> None:
    """Print the transcript; `runs` is the folder for both runs."""
    _record(runs, "sound", {})
    _record(runs, "faulty", FAULT)
    _shown(runs, ("compare", "sound", "faulty"), {})
    _shown(runs, ("bisect", "faulty", "--kernel", KERNEL, *JUDGE), FAULT)


def _record(runs: Path, name: str, variables: Mapping[str, str]) -> None:
    path = _tracing(runs, ("run", "gated_mlp"), variables, status=0).splitlines()[-1]
    Path(path).rename(runs / name)


def _shown(runs: Path, command: tuple[str, ...], variables: Mapping[str, str]) -> None:
    print(f"$ tracing {' '.join(command)}")
    said = _tracing(runs, command, variables, status=1)
    print(said.replace(f"{runs}/", "runs/").replace(f"{ROOT}/", ""), flush=True)  # paths, as a user sees them


def _tracing(runs: Path, command: tuple[str, ...], variables: Mapping[str, str], status: int) -> str:
    # --runs precedes a judge's command, which takes all that follows
    options = (*command[:1], "--runs", str(runs), *command[1:])
    done = subprocess.run(
        [sys.executable, "-m", "tracing", *options],
        env={**os.environ, **variables},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode != status:
        raise Problem(
            f"`tracing {' '.join(command)}` ended with {done.returncode}, not {status}\n{done.stderr}",
            "`make doctor` says what this machine lacks",
        )
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo(Path(folder))


if __name__ == "__main__":
    sys.exit(run("demo", main))
