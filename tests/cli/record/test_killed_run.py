"""`tracing run` of a case whose compiler takes the process down names the pass all the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

from commands import DATA, tracing

FAULT = {"pass": "tritongpu-coalesce", "die": "abort", "if": "tt.load"}


def test_a_pass_that_aborts_is_named_with_its_assertion_and_the_status_is_2(tmp_path: Path) -> None:
    compiler = os.pathsep.join([str(DATA / "faulty_compiler"), os.environ.get("PYTHONPATH", "")])
    env = {"FAULT": json.dumps(FAULT), "PYTHONPATH": compiler}

    done = tracing("run", "silu", "--json", runs=tmp_path, **env)
    shown = tracing("show", json.loads(done.stdout)["run"], runs=tmp_path, **env)

    assert done.returncode == 2
    said = "pass tritongpu-coalesce (ttgir) failed: Faulty.cpp:12: void run(): Assertion `layout"
    assert f"kernel triton_poi_fused_mul_sigmoid_0: {said}" in done.stderr
    assert "SIGABRT ended the process" in json.loads(done.stdout)["detail"]
    assert said in shown.stdout
