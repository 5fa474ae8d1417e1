"""`tracing minify` on graphs of 30 and 200 nodes.

    python -m pytest tests/soak/test_minify.py

Some 15 minutes.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import DATA, tracing

AROUND = DATA / "surrounded.py"


def minified(case: str, folder: Path, *options: str) -> dict[str, Any]:
    done = tracing("minify", case, "--json", "-o", str(folder), *options, runs=folder)
    assert done.returncode == 1, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("pytorch_197434", 4),
        ("pytorch_175966", 4),
        ("pytorch_198119", 4),
        ("pytorch_198131", 6),
        ("pytorch_198101,after=0", 7),
        ("pytorch_198094,how=slice,after=0", 6),
        ("pytorch_198094,how=diagonal,after=0", 6),
    ],
)
def test_few_nodes_are_left_of_a_model_around_a_wrong_program(name: str, most: int, tmp_path: Path) -> None:
    answer = minified(f"{AROUND}:name={name}", tmp_path)

    assert answer["nodes"]["before"] >= 20
    assert answer["nodes"]["after"] <= most
    assert answer["reproduces"], answer["said"]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", ["wrong", "raises"])
def test_one_fault_in_a_graph_of_200_nodes_is_cut_out_by_at_most_200_executions(
    fault: str, tmp_path: Path
) -> None:
    answer = minified(f"{DATA / 'long_graph.py'}:fault={fault}", tmp_path)

    assert answer["nodes"]["before"] >= 200
    assert answer["nodes"]["after"] <= 5 and answer["executions"] <= 200
    assert "erf" in answer["code"]
    assert answer["reproduces"] and answer["loads_case"]  # the case plants the fault into the compiler


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("fault", "options", "kind", "node"),
    [
        ("dies", (), "dies", "erf"),
        ("unstable", ("--predicate", "unstable"), "unstable", "noisy"),
        (
            "reduced",
            ("--predicate", "kernels", "--setting", "triton.persistent_reductions=False"),
            "other kernels",
            "sum",
        ),
    ],
)
def test_each_predicate_leaves_the_node_that_it_is_about(
    fault: str, options: tuple[str, ...], kind: str, node: str, tmp_path: Path
) -> None:
    answer = minified(f"{DATA / 'long_graph.py'}:fault={fault},nodes=40", tmp_path, *options)

    assert answer["symptom"]["kind"] == kind
    assert answer["nodes"]["before"] >= 40 and answer["nodes"]["after"] <= 5
    assert node in answer["code"]


@pytest.mark.timeout(600)
def test_after_ctrl_c_the_same_command_executes_only_what_it_has_not(tmp_path: Path) -> None:
    case, scratch = str(DATA / "checked.py"), tmp_path / "scratch"
    scratch.mkdir()
    options = ("--predicate", "constraint", "--unsupported", "tanh", "-o", str(tmp_path))
    search = subprocess.Popen(
        [sys.executable, "-m", "tracing", "minify", case, *options],
        env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True,
        preexec_fn=foreground,
    )  # fmt: skip
    while search.poll() is None and len(trials(tmp_path)) < 2:
        time.sleep(0.02)
    os.killpg(search.pid, signal.SIGINT)
    said = search.communicate()[1]

    assert search.returncode == 2 and "Traceback" not in said
    before = trials(tmp_path)
    assert f"interrupted, after {len(before)} executions" in said
    assert list(scratch.iterdir()) == []  # no caches of the interrupted execution

    answer = minified(case, tmp_path, *options)
    after = trials(tmp_path)
    assert after[: len(before)] == before and len({*after}) == len(after)
    assert (answer["known"], answer["executed"]) == (len(before), len(after) - len(before))
    assert answer["reproduces"], answer["said"]


def foreground() -> None:
    """Give a child a process group, in which Ctrl-C interrupts: a test in the background ignores it."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def trials(folder: Path) -> list[str]:
    """The executed candidates, in order."""
    files = list(folder.glob("trials-*.ndjson"))
    return [json.dumps(json.loads(line)["edit"]) for file in files for line in file.read_text().splitlines()]


@pytest.mark.timeout(600)
def test_an_interrupted_search_goes_on_from_what_is_known(tmp_path: Path) -> None:
    case = str(DATA / "upstream/pytorch_175966.py")
    answer = minified(case, tmp_path)
    trials = next(tmp_path.glob("trials-*.ndjson"))
    whole = trials.read_bytes()
    lines = whole.splitlines(keepends=True)
    trials.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # as an interruption leaves it
    resumed = minified(case, tmp_path)

    assert (resumed["executed"], resumed["known"]) == (1, len(lines) - 1)
    assert (resumed["code"], resumed["executions"]) == (answer["code"], answer["executions"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("kernel_result.py", ()),
        ("kernel_result.py:tuned=true", ()),
        ("kernel_result.py:tuned=true", ("--predicate", "constraint", "--unsupported", "triton.scaled")),
    ],
)
def test_a_script_has_the_kernels_that_the_program_launches(
    case: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    whole = minified(str(DATA / case), tmp_path, "--tries", "1", *options)

    functions = {node.name for node in ast.walk(ast.parse(Path(whole["script"]).read_text()))
                 if isinstance(node, ast.FunctionDef)}  # fmt: skip
    assert {"scaled", "times"} <= functions
    assert not whole["finished"]
    assert whole["reproduces"], whole["said"]


@pytest.mark.timeout(600)
def test_an_error_in_the_copy_of_a_programs_kernel_is_a_repro_without_a_gpu(tmp_path: Path) -> None:
    answer = minified(str(DATA / "renamed_helper.py"), tmp_path, "--tries", "1")

    assert answer["symptom"]["text"].endswith("NameError('thrice is not defined')")
    assert answer["reproduces"], answer["said"]
    assert "do_not_specialize=['n']" in Path(answer["script"]).read_text()


def test_a_graph_that_does_not_fail_is_one_clear_error(tmp_path: Path) -> None:
    done = tracing("minify", "silu", "--json", "--predicate", "constraint", runs=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "no graph of the case fails" in done.stderr and "Traceback" not in done.stderr
