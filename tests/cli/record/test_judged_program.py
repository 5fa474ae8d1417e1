"""`tracing run --judge PROGRAM` judges the run when the program has ended, and ends as the program does."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import tracing
from handmade.records import launch
from handmade.runs import saved

from tracing import store
from tracing.cli.answers import hints, recording_hints
from tracing.model import KeptAnswer

SCALED = """
import os, sys
import torch
import torch._inductor.config as inductor

def double(graph):
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        node.args = (node.args[0], 4.0)

if "wrong" in sys.argv:
    inductor.joint_custom_post_pass = double

@torch.compile
def scaled(x):
    return torch.tanh(x) * 2.0

torch.set_default_dtype(torch.float64)
scaled(torch.ones(8, dtype=torch.float32))
print("scaled", flush=True)
"""
ENDS = {
    "os._exit(0)": 0,
    "sys.exit(3)": 3,
    "os._exit(4)": 4,
    "raise ValueError('worse')": 1,
    "os.kill(os.getpid(), 9)": -signal.SIGKILL,
    "os.kill(os.getpid(), 15)": -signal.SIGTERM,
}


def test_a_program_is_judged_with_its_graph_passes_when_it_has_ended(tmp_path: Path) -> None:
    (path := tmp_path / "scaled.py").write_text(SCALED)

    right = tracing("run", "--judge", str(path), runs=tmp_path / "runs")
    wrong = tracing("run", "--judge", str(path), "wrong", runs=tmp_path / "runs")

    assert (right.returncode, wrong.returncode) == (0, 1), right.stderr + wrong.stderr
    assert right.stdout == wrong.stdout == "scaled\n"
    assert "\ntracing: every launch that was judged is right\n" in right.stderr
    assert "\ntracing: ✗ output 0 is not what the graph that Dynamo traced computes\n" in wrong.stderr
    double = "joint pass joint_custom_post_pass, double (scaled.py:6), changes 1 line of the graph to 1\n"
    assert double in wrong.stderr and "did not record" not in wrong.stderr
    assert "after     %mul = aten.mul.Tensor(%tanh, 4.0)\n" in wrong.stderr
    run = store.open_run("latest", tmp_path / "runs")
    [command] = re.findall(r"next +(tracing passes .*)", wrong.stderr)
    shown = tracing(*shlex.split(command)[1:], runs=tmp_path / "runs")
    assert command.startswith(f"tracing passes {run.path} --graph 0 --pass ") and shown.returncode == 0
    assert "-%mul = aten.mul.Tensor(%tanh, 2.0)" in shown.stdout
    assert "tracing judge" not in right.stderr + wrong.stderr
    assert [(one.name, one.status) for one in run.records(KeptAnswer)] == [("judge", 1)]


BACKEND = """
import sys
import torch
from torch._inductor.compile_fx import compile_fx

def backend(graph, inputs):
    for node in graph.graph.nodes:
        if sys.argv[1:] and node.target is torch.cos:
            node.target = torch.sin
    graph.recompile()
    return compile_fx(graph, inputs)

torch.compile(lambda x: torch.cos(x) * 2, backend=backend)(torch.ones(8, device="cuda"))
"""


@pytest.mark.parametrize("words", [(), ("wrong",)])
def test_what_a_backend_of_the_program_changes_is_not_covered(words: tuple[str, ...], tmp_path: Path) -> None:
    (path := tmp_path / "own.py").write_text(BACKEND)

    done = tracing("run", "--judge", "--no-passes", str(path), *words, runs=tmp_path / "runs")

    changes = "not covered: what the backend backend changes in Dynamo's graphs, before Inductor (0/0)"
    assert (done.returncode, changes in done.stderr) == (0, bool(words)), done.stderr


@pytest.mark.parametrize("end", ["os._exit(4)", "os.kill(os.getpid(), 9)"])
def test_a_judged_program_ends_as_without_judge(end: str, tmp_path: Path) -> None:
    _ends(end, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("end", ENDS)
def test_a_judged_program_ends_in_every_manner_as_without_judge(end: str, tmp_path: Path) -> None:
    _ends(end, tmp_path)


def _ends(end: str, folder: Path) -> None:
    (path := folder / "ends.py").write_text(f"{SCALED}\n{end}\n")

    done = tracing("run", "--judge", "--no-passes", str(path), runs=folder / "runs")

    assert (done.returncode, done.stdout) == (ENDS[end], "scaled\n"), done.stderr
    assert ("launch judged: 1 right" in done.stderr) == (ENDS[end] >= 0)
    by = re.findall(r"not judged, as (\w+) ended the program", done.stderr)
    assert by == ([signal.Signals(-ENDS[end]).name] if ENDS[end] < 0 else [])


def test_a_judgement_that_sigterm_ends_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    (path := tmp_path / "scaled.py").write_text(SCALED)
    options = ["--judge", "--no-passes", "--runs", tmp_path / "runs"]
    words = [sys.executable, "-m", "tracing", "run", *options, path]
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2"}
    judging = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    children = Path(f"/proc/{judging.pid}/task/{judging.pid}/children")
    while not children.read_text().strip():
        time.sleep(0.01)
    while children.read_text().strip():  # the program; its run is judged afterwards
        time.sleep(0.01)
    time.sleep(0.2)  # while torch is imported

    judging.terminate()
    _, said = judging.communicate()

    run = store.open_run("latest", tmp_path / "runs")
    assert judging.returncode == -signal.SIGTERM
    assert f"rank 1: SIGTERM ends the judgement before all is judged: tracing judge {run.path}\n" in said
    assert "SIGTERM ended the judgement before it" in said and "hand-written" not in said
    (kept,) = run.records(KeptAnswer)
    assert (kept.name, kept.status, kept.next[0]) == ("judge", 2, f"tracing judge {run.path}")
    assert tracing("judge", "latest", runs=tmp_path / "runs").returncode == 0


@pytest.mark.parametrize(("ranks", "job"), [("1", False), ("2", True)])
def test_of_a_program_that_was_killed_the_command_that_judges_it_is_printed(
    ranks: str, job: bool, tmp_path: Path
) -> None:
    (path := tmp_path / "ends.py").write_text(f"{SCALED}\nos.kill(os.getpid(), 9)\n")

    done = tracing("run", "--judge", "--no-passes", path, runs=tmp_path / "runs", WORLD_SIZE=ranks, RANK="0")

    (command,) = re.findall(r"may be lost: (.*)", done.stderr)
    assert command.startswith("torchrun --nproc-per-node=2 ") is job  # `tracing judge` does not repeat a job
    assert (" --judge --keep-memory 0 " in command) is job and command.startswith("tracing judge ") is not job


@pytest.mark.parametrize(("text", "repeated"), [("import torch", False), ("option('--judge')", True)])
def test_a_proposed_command_repeats_no_judge_that_was_meant_for_tracing(
    text: str, repeated: bool, tmp_path: Path
) -> None:
    (path := tmp_path / "train.py").write_text(text)
    run = saved(tmp_path, [launch(0)], kind="program", program=(str(path), "--judge", "--epochs", "3"))

    words = f"{path} --judge --epochs 3" if repeated else f"{path} --epochs 3"
    for command in (
        recording_hints.judge_command(run),
        recording_hints.keep_inputs(run),
        hints.bisection(run),
    ):
        assert command.endswith(f" {words}")


def test_the_ranks_of_one_run_are_not_judged(tmp_path: Path) -> None:
    (path := tmp_path / "scaled.py").write_text(SCALED)

    done = tracing("run", "--judge", "--rank-aware", str(path), runs=tmp_path / "runs", WORLD_SIZE="2")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--judge is for a run of one process" in done.stderr


def test_a_rank_with_a_run_of_its_own_is_judged(tmp_path: Path) -> None:
    (path := tmp_path / "scaled.py").write_text(SCALED)

    done = tracing("run", "--judge", str(path), runs=tmp_path / "runs", RANK="1", WORLD_SIZE="2")

    assert done.returncode == 0, done.stderr
    assert "\ntracing: rank 1: every launch that was judged is right\n" in done.stderr


def test_a_rank_that_fails_proposes_commands_that_start_its_job(tmp_path: Path) -> None:
    (path := tmp_path / "scaled.py").write_text(f"{SCALED}\nraise ValueError('worse')\n")

    done = tracing("run", str(path), runs=tmp_path / "runs", RANK="1", WORLD_SIZE="2")

    assert "is wrong: torchrun --nproc-per-node=2 -m tracing run --judge " in done.stderr
    assert "if one rank fails alike: torchrun --nproc-per-node=1 -m tracing bisect " in done.stderr
