"""Write the help of a command: options as a list in which no name and no word is broken.

typer's own tables break `--allow-out-of-bounds` in a terminal of 80 columns.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from typer import style
from typer.core import TyperCommand

from tracing.cli.answers.usage_errors import UsageError

_WIDEST = 100  # columns: longer lines are hard to read
_NAMES = 26  # columns of the names of options and commands; a longer name has a line of its own


class HelpCommand(TyperCommand):
    """A command whose help is written by this module."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a refused option without its value names this command, which click omits."""
        try:
            return list(super().parse_args(ctx, args))
        except UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command."""
        formatter.write(command_help(self, ctx))


def command_help(command: Any, ctx: Any) -> str:
    """The help of one command: usage, what it does, an example, the exit status, arguments and options."""
    lines = [*_usage(command, ctx), "", *_paragraphs(command.help or "")]
    for title, kind in (("Arguments:", "argument"), ("Options:", "option")):
        params = [one for one in command.get_params(ctx) if one.param_type_name == kind]
        lines += _section(title, _entries(params, ctx))
    return "\n".join(lines) + "\n"


def group_help(group: Any, ctx: Any) -> str:
    """The help of a group: its commands in the sections of their `rich_help_panel`, in order."""
    lines = [*_usage(group, ctx), "", *_paragraphs(group.help or "")]
    sections: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if not command.hidden:
            sentence = (command.help or "").split("\n\n")[0]
            sections.setdefault(command.rich_help_panel or "Commands:", []).append((name, sentence))
    for title, commands in sections.items():
        lines += _section(title, commands)
    lines += _section("Options:", _entries(group.get_params(ctx), ctx))
    return "\n".join(lines) + "\n"


def _usage(command: Any, ctx: Any) -> Iterator[str]:
    # without the brackets that are put around a metavar, which has its own
    pieces = [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1", one) for one in command.collect_usage_pieces(ctx)]
    pieces = [re.sub(r"^\[(\[.*\](?:\.\.\.)?)\](\.\.\.)?$", r"\1", one) for one in pieces]
    yield from _wrapped(f"Usage: {ctx.command_path} {' '.join(pieces)}", "", "       ")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        words = " ".join(paragraph.split())
        if words.startswith("Example: "):
            yield from _example(words.removeprefix("Example: "))
        else:
            yield from _wrapped(words, "", "")


def _example(command: str) -> Iterator[str]:
    # a shell command to be copied, broken only before options and operators of the shell
    title = "Example, on what `make demo` records:" if "demo-" in command else "Example:"
    if len(f"{title} {command}") <= _columns():
        yield f"{title} {command}"
        return
    yield title
    line, *rest = re.split(r" (?=--|\||&&)", command)
    line = f"  {line}"
    for one in rest:
        if len(f"{line} {one} \\") > _columns():
            yield f"{line} \\"
            line = f"    {one}"
        else:
            line = f"{line} {one}"
    yield line


def _section(title: str, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = list(entries)
    if not rows:
        return
    yield ""
    yield style(title, bold=True)
    column = min(_NAMES, max(len(name) for name, _ in rows) + 4)
    for name, description in rows:
        indent = " " * column
        if len(name) + 4 <= column:
            yield from _wrapped(description, f"  {name}".ljust(column), indent) or [f"  {name}"]
        else:
            yield f"  {name}"
            yield from _wrapped(description, indent, indent)


def _entries(params: Iterable[Any], ctx: Any) -> Iterator[tuple[str, str]]:
    # the names of each parameter with the type of a value; a flag takes none
    for one in params:
        record = one.get_help_record(ctx)
        if record is not None:
            name = re.sub(r" \[required\]", "", record[0])
            name = re.sub(r"<(?:list\[)?([^\]>]*?)(?: range)?\]?>", r"<\1>", name)
            named = one.metavar and one.param_type_name == "argument"
            yield (re.sub(r" <\w+>$", "", name) if named else name.removesuffix(" <bool>")), record[1]


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), _columns(), initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _columns() -> int:
    return min(_WIDEST, shutil.get_terminal_size().columns)
