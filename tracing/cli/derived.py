"""A run opened for its passes: the IR that its recording did not come to derive is derived first."""

from __future__ import annotations

from pathlib import Path

from tracing import store
from tracing.cli.app import err
from tracing.environment import installed
from tracing.errors import Problem
from tracing.model import Derivation


def open_derived(name: str, runs: Path) -> store.Run:
    """Open a run as `store.open_run` does, with the IR before and after every pass.

    What a recording left underived, as its process died or was interrupted, is derived now; what cannot be
    derived is said. Raises Problem where another version of Triton is installed than recorded the run.
    """
    run = store.open_run(name, runs)
    if waiting := len(run.underived()):
        _require_same_triton(run, waiting)
        with err.status(f"deriving the IR of {waiting} compilations") as status:
            from tracing.record.derive import derive

            derive(run.path, progress=lambda done, of: status.update(f"IR of {done} of {of} compilations"))
    for one in run.records(Derivation):
        if one.differs:
            warn(one)
    return run


def warn(one: Derivation) -> None:
    """Say that a compilation did not come out as recorded."""
    err.print(
        f"warning: compilation {one.compilation} of process {one.process}, run once more: {one.differs}\n"
        "  for the IR as it was, record with `--ir during`",
        markup=False,
    )


def _require_same_triton(run: store.Run, waiting: int) -> None:
    wanted, found = run.info.environment.triton, installed("triton")
    if wanted != found:
        raise Problem(
            f"the IR of {waiting} compilations of {run.path} is not derived yet, and here is Triton {found}",
            f"open it with Triton {wanted}, which recorded it",
        )
