"""`tracing bisect CASE --good-torch V`: record a case with two versions of torch, and compare them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tracing import store
from tracing.analyze.graphs.compiler_divergence import TwoCompilers, two_compilers
from tracing.cli.app import out, spinner
from tracing.environment import ROOT, installed, module_command, with_variables
from tracing.errors import Problem
from tracing.report.bisect import two_compilers as report


def search_good_torch(
    case: str, good: str, target: str, seed: int, runs: Path, seconds: float, *, as_json: bool
) -> int:
    """Record the case here and with the good torch, print the first divergence, and return the exit status.

    good    -- a version of torch, or the folder of an environment
    seconds -- time limit of one recording
    """
    there = python_of(good)
    options = ("--target", target, "--seed", str(seed), "--graph-passes", "--runs", str(runs))
    a = _recorded(sys.executable, (case, *options), seconds, f"torch {installed('torch')}")
    b = _recorded(str(there), (case, *options), seconds, f"torch of {there.parents[1].name}")
    with spinner("comparing graphs and IR"):
        answer = two_compilers(a, b)
    status = exit_status(answer)
    environments = (a.info.environment, b.info.environment)
    if as_json:
        paths = (str(a.path), str(b.path))
        print(
            json.dumps({"status": status, **report.two_compilers_json(answer, paths, environments)}, indent=2)
        )
        return status
    for line in report.two_compilers_text(answer, *environments):
        out.print(line)
    out.print(f"a: {a.path}\nb: {b.path}")
    return status


def exit_status(answer: TwoCompilers) -> int:
    """0: both are right. 1: a is wrong, b is right, and a stage is named. 2: otherwise."""
    a, b = (outcome.status if outcome else "interrupted" for outcome in answer.outcomes)
    if a == b == "passed":
        return 0
    return 1 if b == "passed" and answer.divergences() else 2


def python_of(good: str) -> Path:
    """The Python of an environment with this torch: a folder, or a version of one of `.venv*` here.

    Raises Problem, with the command that makes the environment, if there is none.
    """
    folders = [Path(good)] if "/" in good else sorted({*Path.cwd().glob(".venv*"), *ROOT.glob(".venv*")})
    for folder in folders:
        python = folder / "bin/python"
        if python.exists() and ("/" in good or _torch_in(folder) == good):
            return python.absolute()
    if "/" in good:
        raise Problem(
            f"{good} is no Python environment: it has no bin/python", "give one, or a version of torch"
        )
    raise Problem(
        f"no environment here has torch {good}",
        f"`make venv VENV=.venv-torch{good} TORCH={good}` makes one; or give the folder of another",
    )


def _torch_in(folder: Path) -> str:
    names = [one.name for one in folder.glob("lib/python*/site-packages/torch-*.dist-info")]
    return names[0].removeprefix("torch-").removesuffix(".dist-info").partition("+")[0] if names else ""


def _recorded(python: str, words: Sequence[str], seconds: float, what: str) -> store.Run:
    own = with_variables({"PYTHONPATH": str(ROOT)})  # this code records both
    with spinner(f"recording with {what}"):
        try:
            done = subprocess.run(
                module_command("tracing", "run", *words, python=python),
                capture_output=True, text=True, env=own, timeout=seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Problem(f"recording with {what} took more than {seconds:.0f} s", "give --seconds") from None
    lines = done.stdout.split()
    if not lines or not Path(lines[-1], "run.json").exists():
        last = next(iter(done.stderr.strip().splitlines()[-1:]), f"exit status {done.returncode}")
        raise Problem(
            f"recording with {what} failed: {last.strip()}", f"`{python} -m tracing run {words[0]}`"
        )
    return store.Run(Path(lines[-1]))
