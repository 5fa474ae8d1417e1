"""Words of a command line that the parser refuses, as a problem and a remedy."""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

import tracing

# click's, which typer 0.26 and later contains
_click: Any = sys.modules[typer.BadParameter.__module__]
UsageError: Any = _click.UsageError


def help_asked(error: BaseException) -> str | None:
    """The help that the parser prints for a command without arguments; None for any other exception."""
    return str(error.format_message()) if isinstance(error, _click.NoArgsIsHelpError) else None


def usage_problem(error: BaseException) -> tuple[str, str] | None:
    """The problem of a refused command line, and what to type; None for any other exception."""
    if not isinstance(error, UsageError):
        return None
    usage: Any = error  # its class has no stubs
    if usage.ctx is None:
        return _plain(usage.message), "`tracing --help` lists the commands"
    command = usage.ctx.info_name if usage.ctx.parent is not None else "tracing"
    asked = f"`{'' if command == 'tracing' else 'tracing '}{command} --help` lists what it takes"
    if isinstance(error, _click.NoSuchOption):
        known = [name for one in usage.ctx.command.get_params(usage.ctx) for name in one.opts]
        near = get_close_matches(usage.option_name, known, n=2, cutoff=0.7)
        of_its_own = _command_like(usage.option_name, usage.ctx)
        return f"{command} has no option {usage.option_name}", "; ".join(
            [*of_its_own, *_nearest(near), asked]
        )
    if isinstance(error, _click.MissingParameter):
        return f"{command} needs {_name(usage)}", asked
    if isinstance(error, _click.BadParameter):
        near = _nearest_values(usage.message)
        return _refused_value(_name(usage), usage.message), "; ".join([*_nearest(near), asked])
    return f"{command}: {_plain(usage.message)}", asked


def unknown_command(name: str, known: list[str]) -> tuple[str, str]:
    """The problem of a command that does not exist, and the nearest ones."""
    near = get_close_matches(name, known, n=3)
    if name == "help":
        return "there is no command help", "`tracing --help` lists all commands"
    if re.search(rf"^{re.escape(name)}:.*## ", _makefile(), re.MULTILINE):
        return f"there is no command {name}", f"`make {name}` is a target of this project's Makefile"
    return f"there is no command {name}", "; ".join([*_nearest(near), "`tracing --help` lists all commands"])


def _makefile() -> str:
    path = Path(tracing.__file__).parents[1] / "Makefile"  # where this project is a checkout
    return path.read_text() if path.is_file() else ""


def _nearest(names: list[str]) -> list[str]:
    return [f"nearest: {', '.join(names)}"] if names else []


def _command_like(option: str, context: Any) -> list[str]:
    name, commands = option.lstrip("-"), context.find_root().command
    known = commands.list_commands(context.find_root()) if hasattr(commands, "list_commands") else []
    return [f"`tracing {name}` is a command: `tracing {name} --help`"] if name in known else []


def _name(usage: Any) -> str:
    hint = usage.param_hint or (usage.param.get_error_hint() if usage.param is not None else "a value")
    return str(hint).replace("'", "")


def _refused_value(name: str, message: str) -> str:
    # typer 0.26 and later converts by pydantic, whose sentences name steps of the parser
    message = message.removeprefix("Value error, ").partition(", unable to parse")[0].rstrip(".")
    if message.startswith("Input should be "):
        needed = message.removeprefix("Input should be ").replace("greater than or equal to", "at least")
        return f"{name} needs {needed}"
    return f"{name}: {message}"


def _nearest_values(message: str) -> list[str]:
    # of "'nans' is not one of 'nan', 'inf', 'any'."
    refused, *known = re.findall(r"'([^']*)'", message) if " is not one of " in message else ("",)
    return get_close_matches(refused, known, n=1)


def _plain(message: str) -> str:
    text = (message[:1].lower() + message[1:]).removeprefix("got ").rstrip(".")
    return re.sub(r"option '(--?[\w-]+)'", r"\1", text)
