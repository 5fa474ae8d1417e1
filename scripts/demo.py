"""Record one case with a correct and with a faulty compiler, find the difference, and name the faulty pass.

The fault is planted below the tool, by tests/data/faulty_compiler: after every run of `triton-combine` it
replaces each `math.exp` by `math.sqrt` in the IR. Neither `compare` nor `bisect` reads the variables that
plant the fault.

Prints each command and its output. Replaces the runs demo-sound and demo-faulty in the folder `runs`, or in
the folder that the first argument names. Exit status 0 if `compare` finds the difference and `bisect` names a
pass.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from scripts.pins import Problem
from scripts.script import run

ROOT = Path(__file__).resolve().parent.parent
FAULT = {
    "FAULT": json.dumps({"pass": "triton-combine", "edit": [["math\\.exp ", "math.sqrt "]]}),
    "PYTHONPATH": str(ROOT / "tests/data/faulty_compiler"),
}
KERNEL = "triton_poi_fused_mul_sigmoid_1#1"
JUDGE = ("--", "grep", "-q", "ex2", "{ptx}")  # the exponential of PTX is ex2


def demo(runs: Path) -> None:
    """Print the transcript; `runs` is the folder for both runs."""
    _record(runs, "demo-sound", {})
    _record(runs, "demo-faulty", FAULT)
    _show(runs, ("compare", "demo-sound", "demo-faulty"), {})
    _show(runs, ("bisect", "demo-faulty", "--kernel", KERNEL, *JUDGE), FAULT)


def _record(runs: Path, name: str, variables: Mapping[str, str]) -> None:
    command = ("run", "gated_mlp", "--keep-inputs", "--keep-outputs")
    path = _tracing(runs, command, variables, status=0).splitlines()[-1]
    shutil.rmtree(runs / name, ignore_errors=True)
    (ROOT / path).rename(runs / name)


def _show(runs: Path, command: tuple[str, ...], variables: Mapping[str, str]) -> None:
    printed = _tracing(runs, command, variables, status=1)
    by_hand = " ".join(f"{name}={quote(value)}" for name, value in variables.items())
    print(
        ("$ " + f"{by_hand} \\\n  " * bool(by_hand) + f"tracing {' '.join(command)}").replace(f"{ROOT}/", "")
    )
    # paths as on any machine
    print(printed.replace(f"{runs}/", "runs/").replace(f"{ROOT}/", ""), flush=True)


def _tracing(runs: Path, command: tuple[str, ...], variables: Mapping[str, str], status: int) -> str:
    # --runs precedes a judge's command, which takes all that follows
    options = (*command[:1], "--runs", str(runs), *command[1:])
    done = subprocess.run(
        [sys.executable, "-m", "tracing", *options],
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode != status:
        raise Problem(
            f"`tracing {' '.join(command)}` ended with {done.returncode}, not {status}\n{done.stderr}",
            "list what this machine lacks with `make doctor`",
        )
    return done.stdout


def main() -> None:
    demo(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs").resolve())


if __name__ == "__main__":
    sys.exit(run("demo", main))
