"""Decides whether a name means a case or a run, and names the nearest ones if it means neither."""

from __future__ import annotations

from pathlib import Path

from tracing import store
from tracing.errors import Problem
from tracing.program.case import is_case, near_cases
from tracing.program.case_options import split_options


def names_case(name: str, runs: Path) -> bool:
    """True if a name is that of a case or a Python file, False if it is that of a run.

    A run that has the name of a case is a run. Raises Problem if it is neither. Imports no torch.
    """
    if store.is_run(name, runs) or Path(name).is_dir():  # opening a folder says what it lacks
        return False
    if is_case(name):
        return True
    if store.names_program(name, runs):
        return False
    name, _ = split_options(name)
    near = [*near_cases(name), *store.near_runs(name, runs)]
    listed = f"list cases with `tracing cases`; {store.listing(runs)}"
    raise Problem(
        f"there is neither a case {name} nor a run of that name below {runs}",
        f"nearest: {', '.join(near)}; {listed}" if near else listed,
    )
