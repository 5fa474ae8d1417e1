"""A guided tour: one command after the other on small cases, each introduced by a sentence.

On a terminal, Enter continues with the next step, and Ctrl-C ends the tour. Runs are written to the folder
`runs`, or to `runs` in the folder of the first argument. Exit status 0 if each command has the expected
status.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts.pins import Problem
from scripts.script import run

ROOT = Path(__file__).resolve().parent.parent
_LINES = 60  # of a command's output that are printed


@dataclass(frozen=True)
class Step:
    """One command of the tour."""

    title: str
    words: str  # text: what the command shows
    command: str  # begins with "tracing" or "python"
    status: int = 0  # expected exit status
    variables: Mapping[str, str] = field(default_factory=dict)


STEPS = (
    Step(
        "Constraints",
        "Which operators could an accelerator without a sigmoid, with rows of 8 elements, not run?",
        "tracing check gated_mlp --alignment 8 --dimension -1 --unsupported sigmoid",
        status=1,
    ),
    Step(
        "Capture",
        "Dynamo's graph of the case, and the guards that are checked before each call.",
        "tracing guards gated_mlp --backend eager",
    ),
    Step(
        "AOTAutograd, Inductor and results",
        "A mocked accelerator checks each ATen graph, Inductor compiles it, and its results are compared.",
        "tracing diff gated_mlp --backends eager,aot_mock_backend",
        variables={"MOCK_STRICT": "0"},
    ),
    Step("Captured graphs", "The checks that this backend recorded.", "tracing check latest"),
    Step(
        "Minifier",
        "The smallest graph that an accelerator without a sigmoid refuses, as a script.",
        "tracing minify gated_mlp --predicate constraint --unsupported sigmoid --fresh",
        status=1,
    ),
    Step(
        "Benchmark",
        "Compile time, latency, graphs and agreement of a small state-space model on the CPU. `violations`\n"
        "counts what `tracing check` lists.",
        "tracing bench ssm:small=true --backends eager,aot_eager --device cpu --runs 5",
    ),
    Step(
        "Compare and bisect",
        "A compiler with a planted fault: the launch that differs, and the pass that is to blame.",
        "python -m scripts.demo",
    ),
)


def tour(folder: Path, steps: Sequence[Step] = STEPS, *, wait: bool = False) -> None:
    """Print and execute the steps in `folder`; raises Problem at the first unexpected exit status.

    wait -- for Enter before each step but the first
    """
    for number, step in enumerate(steps, 1):
        if wait and number > 1:
            input("\nEnter: the next step  ")
        print(f"\n── {number} of {len(steps)}: {step.title}\n{step.words}\n")
        variables = [f"{name}={value}" for name, value in step.variables.items()]
        print(f"$ {' '.join([*variables, step.command])}", flush=True)
        started = time.monotonic()
        done = _executed(step, folder)
        _print_lines(done.stdout)
        if done.returncode != step.status:
            raise Problem(
                f"`{step.command}` ended with {done.returncode}, not {step.status}\n{done.stderr}",
                "list what this machine lacks with `make doctor`",
            )
        print(f"({time.monotonic() - started:.0f} s)", flush=True)


def _executed(step: Step, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *rest = shlex.split(step.command)
    module = ["-m", "tracing"] if program == "tracing" else []
    if rest[:2] == ["-m", "scripts.demo"]:
        rest = [*rest, str(folder / "runs")]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return subprocess.run(
        [sys.executable, *module, *rest],
        env={**os.environ, "PYTHONPATH": path, **step.variables},
        cwd=folder,
        capture_output=True,
        text=True,
    )


def _print_lines(text: str) -> None:
    lines = text.strip("\n").splitlines()
    for line in lines[:_LINES]:
        print(line)
    if len(lines) > _LINES:
        print(f"... {len(lines) - _LINES} more lines")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT).resolve()
    try:
        tour(folder, wait=sys.stdin.isatty() and sys.stdout.isatty())
    except KeyboardInterrupt:
        raise Problem(
            "interrupted", f"`make demo` begins at step 1; what the steps recorded: {folder / 'runs'}"
        ) from None


if __name__ == "__main__":
    sys.exit(run("tour", main))
