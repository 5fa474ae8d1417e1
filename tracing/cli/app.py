"""Shared by all commands: the application, its help groups, consoles, progress, and the folder of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from tracing.cli.answers.failures import reported
from tracing.cli.answers.terminal import SafeConsole
from tracing.cli.answers.usage_errors import unknown_command
from tracing.cli.help_page import HelpCommand, group_help
from tracing.environment import version_text
from tracing.errors import Problem

# The groups of `tracing --help`.
RECORD = "Record: run a program, and write what it launches"
LOOK = "Look: what a run holds"
COMPARE = "Compare: where runs differ"
NARROW = "Narrow: which kernel, which pass, which instruction"
VALIDATE = "Validate: torch, Triton and this machine"
DEBUG = "Debug: gdb or lldb in the process that compiles"
SHARE = "Share: runs in other tools"

# Each command and its module of tracing.cli, in the order of `tracing --help`.
COMMANDS = {
    "run": "record.run",
    "bench": "record.bench",
    "cases": "look.cases",
    "list": "look.list",
    "show": "look.show",
    "passes": "look.passes.command",
    "line": "look.line",
    "report": "look.report",
    "serve": "look.serve.command",
    "compare": "compare.compare",
    "repeat": "compare.repeat",
    "diff": "compare.diff",
    "ranks": "compare.ranks",
    "nan": "compare.nan",
    "winners": "compare.winners",
    "replay": "narrow.replay",
    "judge": "narrow.judge",
    "swap": "narrow.swap",
    "bisect": "narrow.bisect.command",
    "minify": "narrow.minify.command",
    "reduce": "narrow.reduce",
    "repro": "narrow.repro",
    "resume": "narrow.resume",
    "lit": "narrow.lit",
    "opt": "narrow.opt",
    "mlir-translate": "narrow.llvm_tools",
    "llvm-opt": "narrow.llvm_tools",
    "llc": "narrow.llvm_tools",
    "check": "validate.check",
    "guards": "validate.guards",
    "doctor": "validate.doctor",
    "debug": "debug.debug",
    "attach": "debug.attach",
    "sql": "share.sql",
    "export": "share.export",
    "clean": "share.clean",
    "execute": "execute",
}


class _Commands(TyperGroup):
    # Imports the module of the one command that is executed: all modules take longer than most comparisons.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for command in self.commands.values():  # typer keeps the line breaks of a docstring
            paragraphs = (command.help or "").split("\n\n")
            command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(group_help(self, ctx))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with reported(err, parsing=True):
            return super().make_context(*args, **kwargs)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise Problem(*unknown_command(args[0], [name for name in COMMANDS if name != "execute"]))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with reported(err):
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._import([cmd_name] if cmd_name in COMMANDS else [])
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        if ctx is None or not ctx.resilient_parsing:  # a shell that completes a name needs no module
            self._import(COMMANDS)
        return [*COMMANDS]

    def _import(self, names: Iterable[str]) -> None:
        for name in names:
            import_module(f"tracing.cli.{COMMANDS[name]}")  # it registers its commands with `app`
        for info in app.registered_commands:
            info.cls = HelpCommand if info.cls is TyperCommand else info.cls
        self.commands = get_group(app).commands


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        packages = {"tracing": "debug-triton", "torch": "torch", "triton": "triton"}
        typer.echo(", ".join(f"{name} {version_text(package)}" for name, package in packages.items()))
        raise typer.Exit()


PrintVersionOption = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_print_version, help="Print the versions, and exit."),
]


@app.callback()
def _tracing(version: PrintVersionOption = False) -> None:
    """Record what torch.compile and Triton do, and find where a program goes wrong.

    Exit status as diff(1): 0 nothing found, 1 a difference, 2 no answer.
    """


# Without markup: a kernel may be named "[bold]". Styled text is a rich.text.Text.
out = SafeConsole(soft_wrap=True, highlight=False, markup=False)
err = SafeConsole(stderr=True, soft_wrap=True, highlight=False, markup=False)

Runs = Annotated[Path, typer.Option("--runs", file_okay=False, help="Folder of the runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as one JSON object: docs/json.md.")]
RUNS = Path("runs")


@contextmanager
def silent() -> Iterator[None]:
    """While active, `out` prints nothing: standard output is reserved for one JSON object."""
    out.quiet = True
    try:
        yield
    finally:
        out.quiet = False


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error, if it is a terminal; yields a function that replaces its text."""
    with err.status(Text(what)) as status:
        yield lambda text: status.update(Text(text))


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error, if it is a terminal; yields a function that advances it by one."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    quiet = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
