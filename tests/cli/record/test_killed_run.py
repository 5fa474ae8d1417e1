"""`tracing run` reports that the case, or its compiler, ended the process."""

from __future__ import annotations

import json
import os
from pathlib import Path

from commands import DATA, tracing

from tracing import store
from tracing.model import Outcome

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


def test_a_case_that_leaves_python_has_not_passed(tmp_path: Path) -> None:
    case = f"{DATA / 'failing.py'}:how=exit,bad=1,file={tmp_path / 'calls'}"
    done = tracing("run", case, runs=tmp_path)

    assert done.returncode == 2
    assert "the case failed: os._exit(0) ended the process" in done.stderr
    (run,) = store.recorded(tmp_path)
    assert [one.status for one in store.Run(run).records(Outcome)] == ["failed"]
