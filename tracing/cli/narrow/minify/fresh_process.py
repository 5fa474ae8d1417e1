"""Run a script in a fresh process and an empty folder; only one that loads the case can import us."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tracing.analyze.bisect_case.symptom import error_core
from tracing.analyze.minify.trial import Trial, one_line
from tracing.environment import with_variables

_START = 60  # seconds in which a process imports torch and Inductor, also on a busy machine
_PATIENCE = 5  # time limit, relative to an execution in a process that has imported torch
_RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
_WITHOUT_PROJECT = f"import sys; sys.modules['tracing'] = None; {_RUN}"


@dataclass(frozen=True, slots=True)
class FreshRun:
    """How a script ended."""

    fails: bool  # the script fails as the graph does
    output: str  # the last lines of its output


def fresh_run(script: Path, trial: Trial, seconds: float, *, loads_case: bool = False) -> FreshRun:
    """Copy a script and its data into an empty folder, and run it there.

    trial      -- the expected failure
    seconds    -- time limit of one execution of the graph
    loads_case -- the script needs this project; else it cannot import it
    """
    limit = _START + seconds if trial.error == "timeout" else _PATIENCE * seconds
    with tempfile.TemporaryDirectory(prefix="tracing-") as name:
        folder = Path(name)
        for file in (script, script.with_suffix(".safetensors")):
            if file.exists():
                shutil.copy(file, folder)
        caches = {
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TRITON_CACHE_DIR": str(folder / "triton"),
        }
        run = _RUN if loads_case else _WITHOUT_PROJECT
        isolated = ("-E", "-s") if loads_case else ("-I",)  # -I: a case could not import the files next to it
        try:
            done = subprocess.run(
                [sys.executable, *isolated, "-c", run, str(folder / script.name)],
                cwd=folder, capture_output=True, text=True, errors="replace", timeout=limit, check=False,
                env=with_variables(caches),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return FreshRun(trial.error == "timeout", f"it did not end within {limit:g} s")
    output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-3:])
    return FreshRun(_fails(done, trial), output or f"exit status {done.returncode}")


def _fails(done: subprocess.CompletedProcess[str], trial: Trial) -> bool:
    if trial.kind == "dies":
        return done.returncode < 0 and signal.Signals(-done.returncode).name == trial.error
    if trial.kind == "raises":
        return done.returncode == 1 and _raises(done.stderr, trial)
    return done.returncode == 1 and "Traceback (most recent call last)" not in done.stderr


def _raises(stderr: str, trial: Trial) -> bool:
    if _core(trial.text) in _core(stderr):
        return True
    # quotes or slashes before the message may join it to them
    messages = stderr.split(f"{trial.error}: ")[1:]
    return any(_core(f"{trial.error}: {one_line(one)}") == _core(trial.text) for one in messages)


def _core(text: str) -> str:
    return re.sub(r"\s+", " ", error_core(text))
