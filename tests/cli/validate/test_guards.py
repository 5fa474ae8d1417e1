"""`tracing guards`: graph breaks, recompilations and limits of a recorded case."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import DATA, tracing
from documents.json_keys import require_documented
from handmade.records import new_run
from typer.testing import CliRunner

from tracing import store
from tracing.cli.app import app
from tracing.model import KeptAnswer

CASE = str(DATA / "broken.py")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of runs, and the answer for a case with breaks, recompilations and a limit."""
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("guards", CASE, "--backend", "eager", "--json", runs=runs)
    assert done.returncode == 1, done.stderr
    require_documented(done.stdout, "## `tracing guards`")
    return runs, json.loads(done.stdout)


def printed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


def test_each_break_is_one_line_of_the_users_code_with_torchs_reason(
    broken: tuple[Path, dict[str, Any]],
) -> None:
    breaks = broken[1]["breaks"]

    assert [(one["python"], one["line"]) for one in breaks] == [
        ("broken.py:18", 'print("a graph cannot print")'),
        ("broken.py:25", "if y.sum() > 0:"),
        ("broken.py:27", "torch._dynamo.graph_break()"),
        ("broken.py:29", "torch._dynamo.graph_break()"),
    ]
    assert [one["reason"].split("\n")[0] for one in breaks[:2]] == [
        "Failed to trace builtin operator",
        "Data-dependent branching",
    ]
    assert breaks[0]["compile_ids"] == ["0/0", "1/0"]  # inlined, then by itself


def test_recompilations_have_the_failed_guard_and_a_limit_ends_them(
    broken: tuple[Path, dict[str, Any]],
) -> None:
    compiles = {one["compile_id"]: one for one in broken[1]["compiles"]}
    named = [one for one in compiles.values() if one["function"] == "named"]

    assert [one["code"] for one in named[1]["failed"]] == ["name == 'a'"]
    assert {one["line"] for one in named[1]["failed"]} == {'return x.sin() if name == "a" else x.cos()'}
    assert [one["compile_id"] for one in named if one["limit"]] == broken[1]["limits"]
    assert len(named) == 9 and not named[-1]["graph"]
    assert len(broken[1]["recompilations"]) == 8  # of `scaled` 1, of `named` 7


def test_a_recorded_run_is_printed_without_executing_the_case(broken: tuple[Path, dict[str, Any]]) -> None:
    runs, answer = broken

    status, text = printed("guards", answer["run"], "--json", "--runs", str(runs))

    assert status == 1 and json.loads(text) == answer
    kept = next(store.Run(Path(answer["run"])).records(KeptAnswer))
    assert (kept.name, kept.status) == ("guards", 1) and "graph breaks at 4 lines" in kept.lines[0]


def test_breaks_come_first_and_a_recompilation_has_only_new_guards(
    broken: tuple[Path, dict[str, Any]],
) -> None:
    runs, answer = broken

    _, text = printed("guards", answer["run"], "--runs", str(runs))

    lines = [line for line in text.splitlines() if line]
    breaks = [line.startswith("✗ graph break") for line in lines]
    assert breaks[0] and sum(breaks) == len(answer["breaks"])
    first = next(i for i, line in enumerate(lines) if re.match(r"\d+/\d+ ", line))
    assert not any(breaks[first:])
    assert text.count("L['x']  check_tensor(") <= len({one["function"] for one in answer["compiles"]})
    assert "___check_type_id" not in text


def test_one_compile_is_printed_with_guards_graph_and_bytecode(broken: tuple[Path, dict[str, Any]]) -> None:
    runs, answer = broken
    frame = next(one for one in answer["compiles"] if one["function"] == "scaled")["compile_id"]

    status, text = printed("guards", answer["run"], "--frame", frame, "--runs", str(runs))

    assert status == 1
    assert "L['n']  L['n'] == 2  broken.py:9: return x * n" in text
    assert "def forward(self, L_x_" in text and "RETURN_VALUE" in text


def test_an_unknown_compile_and_a_run_without_compiles_are_no_answer(
    broken: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    answer = broken[1]

    assert "these are known: 0/0, 1/0" in printed("guards", answer["run"], "--frame", "9/9")[1]
    assert printed("guards", answer["run"], "--frame", "9/9")[0] == 2
    assert printed("guards", str(new_run(tmp_path).path))[0] == 2


PROGRAM = """
import sys
import torch

print(sys.argv[1:])
scale = torch.compile(lambda x, n: x.sin() * n, backend="eager", dynamic=False)
for n in range(2):
    scale(torch.ones(3), n)
raise {ending}
"""


@pytest.mark.soak
@pytest.mark.parametrize("ending", ["SystemExit(3)", "KeyboardInterrupt"])
def test_a_program_with_arguments_is_executed_to_its_end_or_to_ctrl_c(ending: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(ending=ending))
    words = ["guards", "--json", "--runs", str(tmp_path), str(program), "--frame", "x"]
    done = subprocess.run([sys.executable, "-m", "tracing", *words], capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert [one["compile_id"] for one in answer["compiles"]] == ["0/0", "0/1"]
    assert answer["recompilations"] == ["0/1"] and answer["compiles"][1]["failed"][0]["code"] == "n == 0"
    assert "['--frame', 'x']" in done.stderr  # what the program prints
    assert ("exit status 3" if "Exit" in ending else "train: KeyboardInterrupt") in done.stderr


def test_a_program_that_raises_is_no_answer_and_its_run_is_readable(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(ending="ValueError('too late')"))
    words = ["guards", "--runs", str(tmp_path), str(program)]
    done = subprocess.run([sys.executable, "-m", "tracing", *words], capture_output=True, text=True)

    assert done.returncode == 2
    assert "the program failed: ValueError: too late (train.py:9)" in done.stderr
    assert "1 recompilation" in printed("guards", "latest", "--runs", str(tmp_path))[1]


def test_the_backend_of_a_program_is_its_own(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("raise AssertionError\n")
    status, text = printed("guards", "--backend", "eager", "--runs", str(tmp_path), str(program))

    assert status == 2 and "--backend is for a case" in text


@pytest.mark.parametrize("backend", [(), ("--backend", "eager")], ids=str)
def test_a_case_is_compiled_with_its_own_arguments_of_torch_compile(
    backend: tuple[str, ...], tmp_path: Path
) -> None:
    code, output = printed(
        "guards", str(DATA / "dynamic_shapes.py"), "--frame", "0/0", *backend, "--runs", str(tmp_path)
    )

    assert code == 0 and "size=[None, None]" in output
