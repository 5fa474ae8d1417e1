"""Commands that stand for a tool of LLVM's end as the tool does: exit status 1 whatever is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tracing.cli.app import err
from tracing.errors import Problem


@contextmanager
def as_a_tool() -> Iterator[None]:
    """Inside, what cannot be done is said, and ends with exit status 1."""
    try:
        yield
    except Problem as problem:
        said, remedy = problem.problem, problem.remedy
    except OSError as error:
        said, remedy = f"{error.filename or 'standard output'}: {error.strerror}", ""
    else:
        return
    err.print(f"tracing: {said}", markup=False)
    if remedy:
        err.print(f"  {remedy}", markup=False)
    raise typer.Exit(1)
