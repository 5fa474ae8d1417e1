"""The application imports what the command that is executed needs, and knows every command."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from handmade.records import launch
from handmade.runs import saved

import tracing.cli
from tracing.cli.app import COMMANDS, app

LOADED = """
import sys
from tracing.cli.app import app
app(["compare", "--help"], standalone_mode=False)
print(*(name for name in sys.modules if name.startswith(("tracing.cli.", "triton", "torch"))))
"""

READING = """
import sys
from tracing.cli.app import app
app(sys.argv[1:], standalone_mode=False)
print(*sys.modules)
"""


def test_a_command_imports_neither_triton_nor_the_modules_of_other_commands() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())

    others = {f"tracing.cli.{module}" for module in COMMANDS.values()} - {"tracing.cli.compare.compare"}
    assert "tracing.cli.compare.compare" in loaded
    assert not loaded & {*others, "triton", "torch"}


def test_the_table_of_commands_names_every_command_and_its_module() -> None:
    for module in pkgutil.walk_packages(tracing.cli.__path__, "tracing.cli."):
        import_module(module.name)

    registered = {
        command.name or command.callback.__name__: command.callback.__module__
        for command in app.registered_commands
        if command.callback
    }
    named = {name: f"tracing.cli.{module}" for name, module in COMMANDS.items()}
    assert registered.keys() == named.keys()
    assert all(registered[name].startswith(module) for name, module in named.items())


def test_the_modules_of_all_commands_import_neither_triton_nor_torch() -> None:
    modules = sorted({f"tracing.cli.{module}" for module in COMMANDS.values()})
    script = f"import sys, {', '.join(modules)}\nprint(sorted({{'torch', 'triton'}} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("command", "modules"),
    [
        ("list", {"tracing.cli.answers.hints", "tracing.analyze.passes.pass_table"}),
        ("show latest", {"tracing.cli.look.passes.command", "tracing.analyze.compare.first_divergence"}),
        ("passes latest", {"tracing.analyze.compare.first_divergence"}),
        ("compare latest~1 latest", {"tracing.cli.look.passes.command"}),
    ],
)
def test_a_command_that_reads_a_run_imports_neither_numpy_nor_the_analyses_of_others(
    command: str, modules: set[str], tmp_path: Path
) -> None:
    for _ in range(2):
        saved(tmp_path, [launch(0)])

    words = [sys.executable, "-c", READING, *command.split(), "--runs", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    imported = set(done.stdout.splitlines()[-1].split())
    assert not imported & {*modules, "numpy", "torch", "triton"}
