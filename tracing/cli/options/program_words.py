"""Splits a command line into options of `tracing` and a program with its arguments, as `python` does.

Options of `tracing` precede the program, and every later argument is the program's. A case takes no
arguments, so options of `tracing` may also follow it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from shlex import join
from typing import Annotated, Any

import typer

from tracing.cli.answers.usage_errors import UsageError
from tracing.cli.app import RUNS, err
from tracing.cli.help_page import HelpCommand
from tracing.cli.options.case_or_run import names_case
from tracing.cli.options.completion import case_names
from tracing.errors import Problem
from tracing.model.one_line import one_line
from tracing.program.case import defines_build, require_case, resembles_case
from tracing.program.case_options import split_options
from tracing.program.near_files import near_files
from tracing.program.user_program import UserProgram
from tracing.store.program_words import is_misplaced

_TO_A_FILE = "write it to a file: `tracing run FILE.py`"
OPTIONS_FIRST = (
    "Options of `tracing` come before the program; every word after it is an argument of the program."
)
ProgramArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="CASE | FILE.py [ARG]... | -m MODULE [ARG]...",
        help="A case: a name, or a file that defines build(device), and options CASE:option=value,... "
        f"A program: any other Python file, or a module, with its own arguments. {OPTIONS_FIRST}",
        autocompletion=case_names,
    ),
]


class ProgramCommand(HelpCommand):
    """A command whose arguments are a case, or a program and the program's arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before a program; the rest is passed through unchanged."""
        start = _start(args, self._with_value(ctx))
        words = args[start:]
        if words and "--" not in args[:start] and is_program(words):
            self._note_options(ctx, args[:start], words)
            _note_missing_build(words[0])
            return list(super().parse_args(ctx, [*args[:start], "--", *words]))
        try:
            return list(super().parse_args(ctx, [*args]))  # it empties the list
        except UsageError:
            if words and self._knows(ctx, args[:start]):  # the refused word may be of a misspelt program
                self.require_name(words[0], args)
            raise

    def require_name(self, word: str, args: Sequence[str]) -> None:
        """Raise Problem if the first word after the options names nothing."""
        _require_case(word)

    def _knows(self, ctx: Any, args: Sequence[str]) -> bool:
        own = {name for one in self.get_params(ctx) for name in (*one.opts, *one.secondary_opts)}
        return all(word.partition("=")[0] in own for word in args if word.startswith("-"))

    def _note_options(self, ctx: Any, start: Sequence[str], words: Sequence[str]) -> None:
        # no error, as a program may read options of the same names from a file of its own
        program = words[0]
        own = {name for one in self.get_params(ctx) for name in one.opts if name.startswith("--")}
        with_value = self._with_value(ctx)
        for option in dict.fromkeys(word.partition("=")[0] for word in words[1:]):
            if option in own and option != "--help" and is_misplaced(option, Path(program)):
                before = "" if option in with_value else f": {_before(ctx, start, option, words)}"
                err.print(
                    f"tracing: {option} goes to {program}; an option of tracing is written before it{before}"
                )

    def _with_value(self, ctx: Any) -> set[str]:
        options = [one for one in self.get_params(ctx) if one.param_type_name == "option"]
        return {
            name
            for one in options
            if not getattr(one, "is_flag", False) and not getattr(one, "count", False)
            for name in one.opts
        }


class ProgramOrRunCommand(ProgramCommand):
    """A command whose arguments are a case, a program and the program's arguments, or a run."""

    def require_name(self, word: str, args: Sequence[str]) -> None:
        """Raise Problem if the first word after the options names nothing."""
        runs = next((Path(value) for option, value in pairwise(args) if option == "--runs"), RUNS)
        if names_case(word, runs):
            _require_case(word)


def _before(ctx: Any, start: Sequence[str], option: str, words: Sequence[str]) -> str:
    program = (word for word in words if word != option)
    return join(["tracing", ctx.info_name, *start, option, *program])


def _note_missing_build(program: str) -> None:
    # misspelt, or with a first parameter of another name
    if Path(program).is_file() and resembles_case(Path(program)):
        named = "it defines no build whose first parameter is `device`"
        err.print(f"tracing: {program} resembles a case, but {named}: it runs as a program")


def runs_program(words: Sequence[str], runs: Path) -> bool:
    """True if the arguments name a case or a program, False if they name a run.

    Raises Problem if they name none of these, and for further words after a case or a run.
    """
    if is_program(words):
        return True
    case = names_case(words[0], runs)
    _require_one(words, "case" if case else "run")
    return case


def is_program(words: Sequence[str]) -> bool:
    """True if the arguments name a program; False: a case, or nothing that exists."""
    if words[0] == "-m":
        return len(words) > 1
    name, options = split_options(words[0])
    path = Path(name)
    if options or not path.exists():
        return False
    if not path.is_file() and not path.is_dir():  # its text can be read only once
        raise Problem(f"{one_line(name)} is no file, and a program on a pipe cannot be recorded", _TO_A_FILE)
    return (path / "__main__.py").is_file() if path.is_dir() else not defines_build(path)


def program_of(words: Sequence[str]) -> UserProgram | None:
    """The program that the arguments name; None if they name a case.

    Raises Problem for a case with further arguments, and for a name that is neither.
    """
    if is_program(words):
        if words[0] == "-m":
            _require_module(words[1])
        return UserProgram(tuple(words))
    if words[0] == "-m":
        raise Problem("-m names no module", "give one: `tracing run -m package.module`")
    _require_case(words[0])
    _require_one(words, "case")
    return None


def _require_case(word: str) -> None:
    if word == "-":
        problem = "a program on standard input cannot be recorded"
        raise Problem(problem, _TO_A_FILE)
    require_case(word)


def _require_one(words: Sequence[str], what: str) -> None:
    if len(words) > 1:
        raise Problem(
            f"{words[0]} is a {what}, and takes no further words: {' '.join(words[1:])}",
            "options of a case follow a colon: CASE:option=value" if what == "case" else "name one run",
        )


def _require_module(module: str) -> None:
    # of package.module, looks only for the package, so that none is imported
    name = module.partition(".")[0]
    if PathFinder.find_spec(name, [str(Path.cwd()), *sys.path[1:]]) or find_spec(name):
        return
    near = [Path(one).stem for one in near_files(Path(f"{name}.py"))]
    listed = f"nearest: {', '.join(near)}; " if near else "name one as for `python -m`; "
    listed += f"a package must be installed in this Python, {sys.executable}"
    raise Problem(f"there is no module {name} here or in this Python", listed)


def case_name(words: Sequence[str]) -> str:
    """The case that the arguments name; raises Problem if they name a program."""
    program = program_of(words)
    if program is not None:
        raise Problem(
            f"{program.name} is a program, not a case: it defines no build(device)",
            "record it with `tracing run`, or add `def build(device: str) -> Workload`",
        )
    return words[0]


def _start(args: Sequence[str], with_value: set[str]) -> int:
    # the first argument that is neither an option of `tracing` nor the value of one
    index = 0
    while index < len(args):
        word = args[index]
        if word == "-m" or not word.startswith("-") or word in ("-", "--"):
            return index
        index += 2 if word in with_value else 1
    return index
