"""`tracing bisect --crash` on a pass that hangs: each compile that hangs takes the whole time limit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from faults.pass_faults import COMPILER, HERE, RECORD

from tracing.model import PassStart
from tracing.store import Run

HANGS = json.dumps({"pass": "triton-combine", "die": "hang", "if": "tt.reduce"})


def tracing(variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracing", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_a_pass_that_hangs_is_named_and_its_records_are_kept(tmp_path: Path) -> None:
    variables = {**os.environ, "FAULT": HANGS, "PYTHONPATH": str(COMPILER)}
    run = _recorded_until(tmp_path, variables, "triton-combine")

    done = tracing(variables, "bisect", str(run), "--crash", "--seconds", "2")
    table = tracing(variables, "passes", str(run), "--kernel", "softmax")

    assert done.returncode == 1, done.stderr
    assert re.search(r"softmax dies in triton-combine \(pass \d+, ttir\)", done.stdout)
    assert "message        it did not end within 2 s" in done.stdout
    assert re.search(r"A compile that hangs takes 2 s from now on; about \d+ compiles? to come", done.stderr)
    assert re.search(r"\d+  ttir   triton-combine +no end +\d+", table.stdout), table.stdout


def _recorded_until(runs: Path, variables: dict[str, str], which: str) -> Path:
    # a recording that is killed once a pass has begun, which hangs
    path = os.pathsep.join([variables["PYTHONPATH"], str(HERE), str(HERE.parent)])
    command = [sys.executable, "-c", RECORD, str(runs), "softmax", "sm_80"]
    with subprocess.Popen(command, env={**variables, "PYTHONPATH": path}) as recording:
        while not any(one.name == which for run in _runs(runs) for one in run.records(PassStart)):
            assert recording.poll() is None
            time.sleep(0.2)
        recording.kill()
    (run,) = _runs(runs)
    return run.path


def _runs(folder: Path) -> list[Run]:
    return [Run(file.parent) for file in folder.glob("*/run.json")]
