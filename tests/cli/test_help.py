"""Every command's help has a first sentence, a valid example and the exit status, in 80 columns."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tracing.cli.app import app

GROUP: Any = typer.main.get_command(app)
COMMANDS = [name for name in GROUP.list_commands(None) if not GROUP.commands[name].hidden]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@cache
def printed(*command: str) -> str:
    """The help of a command on a terminal of 80 columns."""
    variables = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"}
    done = CliRunner().invoke(app, [*command, "--help"], env=variables)
    assert done.exit_code == 0, done.output
    return ESCAPES.sub("", done.output)


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)], ids=" ".join)
def test_help_fits_80_columns(command: tuple[str, ...]) -> None:
    assert [line for line in printed(*command).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_one_sentence(name: str) -> None:
    sentence = GROUP.commands[name].help.split("\n\n")[0]

    assert sentence[0].isupper() and sentence.endswith(".") and ". " not in sentence


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_the_exit_status_means(name: str) -> None:
    assert re.search(r"^Exit status: \S", GROUP.commands[name].help, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_is_accepted_by_the_command(name: str) -> None:
    (line,) = re.findall(r"^Example: (tracing .+)$", GROUP.commands[name].help, re.MULTILINE)
    program, command, *words = shlex.split(line)

    assert (program, command) == ("tracing", name)
    GROUP.commands[name].make_context(name, words, resilient_parsing=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_its_answer_as_json_on_request(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in GROUP.commands[name].params)


def test_the_commands_are_listed_in_the_groups_of_their_questions() -> None:
    lines = printed().splitlines()
    groups = [line.split()[1].rstrip(":") for line in lines if line.startswith("╭")]
    listed = [match[1] for line in lines if (match := re.match(r"│ ([a-z][a-z-]+) ", line))]

    assert groups == ["Options", "Record", "Look", "Compare", "Narrow", "Validate", "Debug", "Share"]
    assert sorted(listed) == sorted(COMMANDS)
    assert listed.index("list") < listed.index("compare") < listed.index("repeat") < listed.index("bisect")
