"""A shell completes names of commands, cases, runs, kernels and passes, and nothing imports torch for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from handmade.runs import saved

from tracing.model import Compilation, PassStart

PROGRAM = """
import sys
from tracing.cli.app import app
try:
    app(prog_name="tracing")
finally:
    assert not {"torch", "triton"} & sys.modules.keys()
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    compilations = [
        Compilation(number, name, digits * 32, "cuda:90", {}, "")
        for number, (name, digits) in enumerate([("softmax", "ab"), ("matmul", "cd"), ("matmul", "ef")])
    ]
    names = ["canonicalize", "tritongpu-coalesce", "canonicalize"]
    passes = [
        PassStart(one.id, index, "ttgir", name if one.id else f"soft-{name}", "", (), "", "")
        for one in compilations
        for index, name in enumerate(names)
    ]
    saved(folder, [], [compilations[0]], case="other").path.rename(folder / "other")
    saved(folder, [], [*compilations, *passes], case="silu")
    return folder


def completed(line: str) -> list[str]:
    """What bash offers for the last word of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TRACING_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **words}, capture_output=True, text=True
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("repe", ["repeat"]),
        ("run gat", ["gated_mlp"]),
        ("minify gat", ["gated_mlp"]),
        ("passes --runs {runs} late", ["latest"]),
        ("show --runs {runs} latest --laun", ["--launch"]),
        ("passes --runs {runs} latest --kernel m", ["matmul#1", "matmul#2"]),
        ("passes --runs {runs} other --kernel ", ["softmax"]),
        ("resume --runs {runs} latest --kernel softmax --pass s", ["soft-canonicalize#1",
         "soft-tritongpu-coalesce", "soft-canonicalize#2"]),
        ("lit --runs {runs} latest --kernel matmul#2 --pass c", ["canonicalize#1", "canonicalize#2"]),
        ("passes --runs {runs}/nothing latest --kernel m", []),
    ],
)  # fmt: skip
def test_names_are_completed(words: str, offered: list[str], runs: Path) -> None:
    assert completed(f"tracing {words.format(runs=runs)}") == offered


def test_runs_are_offered_newest_first(runs: Path) -> None:
    (run,) = [path.name for path in runs.iterdir() if path.name != "other"]

    assert completed(f"tracing show --runs {runs} ") == ["latest", run, "other"]


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_the_script_of_the_shell_is_installed_and_shown(option: str, tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "tracing", option, "bash"]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert "tracing" in done.stdout
