"""`tracing bisect` as a user runs it, on a compiler whose pipeliner emits a wait for too few async copies."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from commands import tracing
from faults.pass_faults import COMPILER, recorded
from recorded.kernels import EXPORTED

from tracing.compiler.opt import printing
from tracing.errors import Problem
from tracing.model import KeptAnswer
from tracing.store import Run

try:
    printing.require()
except Problem:
    pytest.skip("this Triton exports no function with which IR is edited in place", allow_module_level=True)
LLVM = (
    "not to blame, because LLVM without its optional passes is bad as well"
    if EXPORTED
    else "cannot be decided, because this Triton does not export LLVM's options"
)
FAULT = {"pass": "tritongpu-pipeline", "edit": [["(ttg.async_wait .*num = )\\d", "\\g<1>9"]]}
VARIABLES = {**os.environ, "FAULT": json.dumps(FAULT), "PYTHONPATH": str(COMPILER)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(recorded(tmp_path_factory.mktemp("runs"), VARIABLES, "matmul", "sm_80"))


def bisect(
    run: Run, *words: str, variables: Mapping[str, str] = VARIABLES
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracing", "bisect", str(run.path), "--kernel", "matmul", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def without(pattern: str, artefact: str = "ptx") -> list[str]:
    return ["--", "sh", "-c", f"! grep -q {pattern} {{{artefact}}}"]


@pytest.fixture(scope="module")
def first(run: Run) -> subprocess.CompletedProcess[str]:
    return bisect(run, *without("wait_group.*9"))


def test_the_faulty_pass_is_named_with_its_evidence(first: subprocess.CompletedProcess[str]) -> None:
    said = first.stdout

    assert first.returncode == 1, said + first.stderr
    assert re.search(r"MLIR passes: first bad with tritongpu-pipeline \(#\d+\)\n    arguments      3, ", said)
    assert "without it     good (exit status 0)" in said
    assert "without any    good (exit status 0)" in said
    assert re.search(r"good as well   without .*tritongpu-schedule-loops \(#\d+\), on which", said)
    assert re.search(r"after it       .*convert-triton-gpu-to-llvm \(#\d+\).* cannot be left out", said)
    assert re.search(r"the IR first computes other values with tritongpu-pipeline \(#\d+\): \w+\[", said)
    assert f"LLVM passes: {LLVM}" in said
    assert "ptxas: not searched, because the judge reads only ptx" in said
    assert "A suspect, not proof" in said


def test_the_printed_commands_reproduce_both_verdicts(first: subprocess.CompletedProcess[str]) -> None:
    anew = dict(re.findall(r"^    judged (bad|good) +(.*)$", first.stdout, re.MULTILINE))

    assert subprocess.run(anew["bad"], shell=True, check=False).returncode == 1
    assert subprocess.run(anew["good"], shell=True, check=False).returncode == 0


@pytest.mark.soak
def test_a_repeated_search_builds_and_judges_only_what_confirms_the_answer(
    first: subprocess.CompletedProcess[str], run: Run
) -> None:
    # the kernel is built from its source and judged three times: the full pipeline, both sides of the answer,
    # and the pipeline without any pass
    assert (
        "4 builds, 12 calls of the judge; the rest is known from earlier searches"
        in bisect(run, *without("wait_group.*9")).stdout
    )


@pytest.mark.soak
def test_fresh_builds_and_judges_everything_anew(run: Run) -> None:
    known = bisect(run, *without("num.=.9", "ttgir")).stdout
    done = bisect(run, "--fresh", *without("num.=.9", "ttgir")).stdout

    built = [int(count) for text in (known, done) for count in re.findall(r"(\d+) builds,", text)]
    assert built[0] == built[1] > 10


@pytest.mark.soak
def test_an_interrupted_search_goes_on_where_it_stopped(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"echo >> {log}; test $(wc -l < {log}) -ne 20 || exit 130; ! grep -q async.commit {{ptx}}"

    first, second = (bisect(run, "--", "sh", "-c", script) for _ in range(2))

    assert first.returncode == 2
    assert "the command ended the search with exit status 130" in first.stderr
    assert second.returncode == 1
    assert f", {len(log.read_text()) - 20} calls of the judge;" in second.stdout


def test_a_good_full_pipeline_ends_the_search_with_status_0(run: Run) -> None:
    done = bisect(run, "--", "grep", "-q", "mma", "{ptx}")

    assert done.returncode == 0
    assert done.stdout.startswith(
        "full pipeline: good (exit status 0)\nThe judge never answered bad, for 1 build;"
    )


def test_a_good_compiler_that_is_not_the_recorded_one_gives_no_answer(run: Run) -> None:
    sound = {name: value for name, value in VARIABLES.items() if name not in ("FAULT", "PYTHONPATH")}

    done = bisect(run, *without("wait_group.*9"), variables=sound)

    assert (done.returncode, done.stdout) == (2, "")
    assert "it is not the recorded one: ttgir, llir, ptx of matmul differ" in done.stderr
    assert f"tracing passes {run.path} latest" in done.stderr
    assert "full pipeline: good" not in [line for one in run.records(KeptAnswer) for line in one.lines]


@pytest.mark.soak
def test_a_fault_that_no_pass_explains_is_undecided_and_the_remaining_passes_are_listed(run: Run) -> None:
    done = bisect(run, *without("mma.sync"))

    assert done.returncode == 2
    assert re.search(r"MLIR passes: cannot be decided, because of \d+ builds, .* none is good", done.stdout)
    assert re.search(r"tritongpu-accelerate-matmul \(#\d+\): without it: pass \d+, .* failed", done.stdout)
    assert "LLVM: steps that cannot be left out" in done.stdout
    assert "    tritongpu-coalesce (#" not in done.stdout


def test_a_judge_that_never_says_good_is_named_as_such(run: Run) -> None:
    done = bisect(run, "--", "sh", "-c", "exit 7 # {ttir}")

    assert done.returncode == 2
    assert re.search(r"The judge never answered good, for \d+ builds;", done.stdout)


@pytest.mark.soak
def test_a_judge_that_hangs_is_stopped(run: Run) -> None:
    done = bisect(run, "--seconds", "8", "--", "sh", "-c", "sleep 100 # {ttir}")

    assert done.returncode == 2
    assert "the full pipeline cannot be judged: the command did not end within 8 s" in done.stderr


@pytest.mark.soak
def test_a_judge_that_is_wrong_now_and_then_is_asked_more_often(run: Run, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    calls.touch()
    script = (
        f'n=$(wc -c < {calls}); printf x >> {calls}; grep -q num.=.9 "$0"; found=$?; '
        "test $((n * 7919 % 61 % 8)) -eq 0 && exit $((1 - found)); test $found -ne 0"
    )
    command = ("--", "sh", "-c", script, "{ttgir}")

    done = bisect(run, "--repeat-judge", "15", *command)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "first bad with tritongpu-pipeline" in done.stdout
    assert re.search(
        r"confidence in the judge \d+\.\d%: \d+ of its \d+ calls, with repetitions, contradict", done.stdout
    )


def test_a_judge_that_reads_ttgir_restricts_the_search_to_earlier_passes(run: Run) -> None:
    done = bisect(run, *without("num.=.9", "ttgir"))

    assert done.returncode == 1, done.stderr
    assert "first bad with tritongpu-pipeline" in done.stdout
    assert "IR before it   good (exit status 0), ttgir" in done.stdout
    assert "certain if the judge is: it read the recorded IR" in done.stdout


def test_a_full_pipeline_that_cannot_be_judged_is_no_answer(run: Run) -> None:
    done = bisect(run, "--", "sh", "-c", "exit 125 # {ptx}")

    assert done.returncode == 2
    assert "cannot be decided, because the full pipeline cannot be judged: exit status 125" in done.stderr


def test_a_run_of_another_triton_is_neither_bisected_nor_resumed(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run.path, other)
    info = (other / "run.json").read_text()
    (other / "run.json").write_text(re.sub(r'("triton": )"[^"]+"', r'\1"3.4.0"', info))

    done = bisect(Run(other), *without("wait_group.*9"))
    resumed = tracing("resume", str(other), "--pass", "tritongpu-coalesce", "--trust", runs=tmp_path)

    for one in (done, resumed):
        assert (one.returncode, one.stdout) == (2, "")
        assert "was recorded with Triton 3.4.0, and this is" in one.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_command_and_without_a_gpu_a_command_is_asked_for(run: Run) -> None:
    done = bisect(run)

    assert done.returncode == 2
    assert "there is no GPU" in done.stderr and "-- COMMAND" in done.stderr
    assert re.search(r"\n  if values are wrong: `tracing (bisect|judge) ", done.stderr)


def test_options_of_a_replay_are_refused_with_a_command(run: Run) -> None:
    done = bisect(run, "--atol", "0", "--", "true")

    assert done.returncode == 2
    assert "--launch, --atol and --rtol have no effect with COMMAND\n" in done.stderr


def test_the_judge_imports_nothing_that_opens_the_gpu() -> None:
    """Builds are launched in forked children, which cannot use a GPU that their parent has opened."""
    importing = "import tracing.cli.narrow.bisect.build_judge, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", importing], capture_output=True, text=True, check=True)

    assert "torch._inductor.runtime.benchmarking" not in done.stdout.split()
