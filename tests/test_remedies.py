"""Everything that messages advise exists: commands with their options, targets of make, packages."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer
from commands import ROOT

from tracing.cli.app import COMMANDS, app
from tracing.model.recorded_variables import RECORDED_VARIABLES

GROUP: Any = typer.main.get_command(app)
FOLDERS = ("tracing", "scripts", "vscode")
PLACEHOLDER = "PLACEHOLDER"
# tools whose options are not ours
FOREIGN = ("opt", "llvm-opt", "llc", "mlir-translate")


@cache
def texts() -> list[tuple[str, str]]:
    """Every string of the sources, with where it is; a value that is inserted is PLACEHOLDER."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", text)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node, text in strings(ast.parse(path.read_text()))
    ]


def strings(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(one.value) if isinstance(one, ast.Constant) else PLACEHOLDER for one in node.values]
            yield node, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node, node.value


def commands(text: str) -> Iterator[str]:
    """The commands of ours in a text: in backticks, or the whole of it."""
    yield from re.findall(r"`(tracing [^`]*)`", text)
    if re.match(r"tracing [a-z]", text):
        yield text


def fault(command: str) -> str:
    """Why a command cannot be typed; empty if it can."""
    words = shlex.split(command.replace("…", ""), posix=True)
    name = words[1]
    if name not in COMMANDS:
        return "" if name == PLACEHOLDER or name.startswith("-") else f"no command {name}"
    known = {opt for one in GROUP.commands[name].params for opt in (*one.opts, *one.secondary_opts)}
    if name in FOREIGN:
        return ""
    own = words[2 : words.index("--")] if "--" in words else words[2:]
    return "; ".join(
        f"{name} has no {word}" for word in own if word.startswith("--") and word.split("=")[0] not in known
    )


def test_every_command_that_a_message_names_exists_with_its_options() -> None:
    GROUP.list_commands(None)
    named = [(where, one) for where, text in texts() for one in commands(text)]

    assert len(named) > 100
    assert [(where, one, why) for where, one in named if (why := fault(one))] == []


def test_every_option_that_a_message_names_belongs_to_a_command() -> None:
    GROUP.list_commands(None)
    params = [one for name in COMMANDS for one in GROUP.commands[name].params]
    known = {opt for one in params for opt in (*one.opts, *one.secondary_opts)}
    known |= {"--list-passes", "--stand-in"}  # among the arguments of `tracing opt`
    named = [
        (where, option)
        for where, text in texts()
        if where.startswith("tracing/cli")
        for option in re.findall(r"`(--[a-z][a-z-]+)(?=[ `])", text)
    ]

    assert len(named) > 10
    assert [(where, one) for where, one in named if one not in known] == []


def test_every_target_and_variable_of_make_that_a_message_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) \?=", makefile, re.MULTILINE))
    named = [
        (where, word)
        for where, text in texts()
        for words in re.findall(r"(?:^|[`:;,] ?|then )make((?: (?:[A-Z_]+=[^\s`;,]*|[a-z-]+))+)", text)
        for word in words.split()
    ]

    assert len(named) > 10
    known = targets | variables
    unknown = [(where, word) for where, word in named if word.partition("=")[0] not in known]
    assert [one for one in unknown if PLACEHOLDER not in one[1]] == []


def test_every_package_of_pip_that_a_message_names_is_one_that_this_project_knows() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    known = set(re.findall(r'^  "([a-z0-9-]+)[><=]', project, re.MULTILINE))
    named = [
        (where, package)
        for where, text in texts()
        for package in re.findall(r"pip install (?!-)'?([A-Za-z][\w.-]*(?:\[\w+\])?)", text)
    ]

    assert len(named) >= 3
    assert [(where, one) for where, one in named if one not in known] == []


def test_every_variable_that_a_message_sets_is_read_somewhere() -> None:
    read = "".join(path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    makefile = (ROOT / "Makefile").read_text()
    named = {
        (where, name)
        for where, text in texts()
        for name in re.findall(r"\b((?:TRACING|TRITON|TORCHINDUCTOR|MOCK)_[A-Z_]+)=", text)
    }

    unread = [
        (where, name)
        for where, name in sorted(named)
        if name not in RECORDED_VARIABLES
        and len(re.findall(rf"\b{name}\b", read)) < 2
        and not re.search(rf"^{name} \?=", makefile, re.MULTILINE)
    ]
    assert unread == []
