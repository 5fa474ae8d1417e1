"""`tracing run` reports that the case, or its compiler, ended the process."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from commands import DATA, tracing

from tracing import store
from tracing.model import Outcome

CRASHES = """
import ctypes, os, sys
import torch

def crash():
    ctypes.string_at(0)

torch.compile(torch.sin)(torch.ones(8))
if (child := os.fork()) == 0:
    os.abort()
os.waitpid(child, 0)
if sys.argv[1:]:
    import faulthandler

    faulthandler.enable()
crash()
"""
TERMINATED = """
import os, signal, sys, time
import torch

def wait():
    time.sleep(60)

torch.compile(torch.sin)(torch.ones(8))
if (child := os.fork()) == 0:
    wait()
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
assert os.waitpid(child, 0)[1] == signal.SIGTERM
if sys.argv[1:]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
signal.setitimer(signal.ITIMER_REAL, 1)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
wait()
"""
CRASHING_CASE = """
import ctypes
from tracing import Workload

def crash(x):
    ctypes.string_at(0)

def build(device):
    return Workload(crash, (1,))
"""
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


@pytest.mark.parametrize("own", [False, True])
def test_the_line_of_a_fatal_signal_is_that_of_the_program_unless_it_prints_it(
    own: bool, tmp_path: Path
) -> None:
    (path := tmp_path / "crashes.py").write_text(CRASHES)

    done = tracing("run", "--no-passes", path, *(["own"] if own else []), runs=tmp_path / "runs")
    shown = tracing("show", "latest", runs=tmp_path / "runs")

    assert done.returncode == -signal.SIGSEGV
    assert ("Fatal Python error: Segmentation fault" in done.stderr) == own
    how = "Segmentation fault in crash (crashes.py:6)"
    how = "the process was killed, or the disk was full" if own else how
    assert f"unfinished: it has no end: {how}\n" in shown.stdout


@pytest.mark.parametrize("own", [False, True])
def test_the_line_at_which_sigterm_ends_a_program_is_noted_unless_it_handles_the_signal(
    own: bool, tmp_path: Path
) -> None:
    (path := tmp_path / "waits.py").write_text(TERMINATED)

    done = tracing("run", "--no-passes", path, *(["own"] if own else []), runs=tmp_path / "runs")
    shown = tracing("show", "latest", runs=tmp_path / "runs")

    assert done.returncode == (3 if own else -signal.SIGTERM), done.stderr
    assert ("it has no end: SIGTERM in " in shown.stdout) != own
    assert len(list(tmp_path.glob("runs/*/crash-*"))) == (not own)


def test_a_program_that_dies_is_judged_up_to_its_end(tmp_path: Path) -> None:
    (path := tmp_path / "crashes.py").write_text(CRASHES)

    tracing("run", "--no-passes", "--keep-inputs", path, runs=tmp_path / "runs")
    judged = tracing("judge", "latest", runs=tmp_path / "runs")
    listed = tracing("list", runs=tmp_path / "runs")
    (shown,) = json.loads(tracing("list", "--json", runs=tmp_path / "runs").stdout)["runs"]

    assert "1 of 1 launch judged: 1 right" in judged.stdout
    assert "  unfinished (Segmentation fault in crash (crashes.py:6))  " in listed.stdout
    assert shown["crash"] == "Segmentation fault in crash (crashes.py:6)"


def test_the_line_of_a_fatal_signal_in_a_case_is_an_error_of_the_case(tmp_path: Path) -> None:
    (path := tmp_path / "case.py").write_text(CRASHING_CASE)

    done = tracing("run", "--no-passes", path, runs=tmp_path / "runs")

    assert done.returncode == 2
    assert f"{path}:6: error: SIGSEGV ended the process in crash\n" in done.stderr


def test_a_program_that_ends_leaves_no_file_for_its_crash(tmp_path: Path) -> None:
    (path := tmp_path / "ends.py").write_text("import faulthandler; print(faulthandler.is_enabled())")

    done = tracing("run", path, runs=tmp_path / "runs")

    assert done.returncode == 0 and not list(tmp_path.glob("runs/*/crash-*"))
