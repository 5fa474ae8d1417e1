"""Exit statuses of commands that fail: one message without a traceback, and exit status 2.

Exit status 1 means that something differs, so no failure may use it; and `sys.exit(0)` in a program under
test is not a success.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tracing import environment
from tracing.cli.answers.terminal import SafeConsole
from tracing.cli.answers.usage_errors import help_asked, usage_problem
from tracing.errors import Problem, message
from tracing.program.near_files import near_files

_PACKAGE = Path(__file__).parents[2]


class LeaveTyper(BaseException):
    """Raised to leave typer; `go_on` is then called outside of it."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        super().__init__()
        self.go_on = go_on


@contextmanager
def reported(err: SafeConsole, *, parsing: bool = False) -> Iterator[None]:
    """While entered, an exception becomes one message and exit status 2; exit statuses of commands pass.

    parsing -- no command runs yet: sys.exit is typer's, which has installed a completion
    """
    try:
        yield
        sys.stdout.flush()  # raises if the disk is full or the reader of a pipe has ended
    except KeyboardInterrupt:
        err.print("tracing: interrupted")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest of the buffers is discarded
        raise typer.Exit(2) from None
    except LeaveTyper:
        raise
    except SystemExit as error:
        if parsing:
            raise
        _fail(
            err, f"the program ended itself: sys.exit({error.code!r})", "a command ends when it has answered"
        )
    except BaseException as error:  # a case may raise a BaseException that is no Exception
        if (text := help_asked(error)) is not None:
            typer.echo(text, err=True)  # it may be styled
            raise typer.Exit(2) from None
        if (usage := usage_problem(error)) is not None:
            _fail(err, *usage)
        if hasattr(error, "exit_code") or isinstance(error, typer.Abort):  # typer's own
            raise
        _fail(err, *_problem_of(error))


def _problem_of(error: BaseException) -> tuple[str, str]:
    if isinstance(error, Problem):
        return error.problem, error.remedy
    if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "triton"):
        return f"{error.name} is not installed in this environment", "`make clean venv` makes it anew"
    if isinstance(error, FileNotFoundError) and error.filename:
        near = near_files(Path(error.filename))
        remedy = f"nearest: {', '.join(near)}" if near else "check the path"
        return f"{error.filename}: there is no such file or folder", remedy
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space on its disk" if full else "check the path and who may access it"
        return f"{file}{error.strerror or message(error)}", remedy
    if environment.wants_traceback():
        traceback.print_exception(error)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if _is_own(one.filename)]
    at = f" ({Path(frames[-1].filename).relative_to(_PACKAGE.parent)}:{frames[-1].lineno})" if frames else ""
    remedy = "a run that was damaged or altered can cause this; TRACING_TRACEBACK=1 prints the traceback"
    return f"{type(error).__name__}: {message(error)}{at}", remedy


def _is_own(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _fail(err: SafeConsole, problem: str, remedy: str) -> None:
    err.print(f"tracing: {problem}")
    if remedy:
        err.print(f"  {remedy}")
    raise typer.Exit(2)
