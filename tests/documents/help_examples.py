"""The example that the help of each command shows."""

from __future__ import annotations

import re
from typing import Any

import typer

from tracing.cli.app import app

GROUP: Any = typer.main.get_command(app)
GROUP.list_commands(None)  # imports the module of every command


def example(name: str) -> str:
    """The command line that the help shows, with what comes before it in a pipe."""
    (line,) = re.findall(r"^Example: (.+)$", GROUP.commands[name].help, re.MULTILINE)
    return str(line)
