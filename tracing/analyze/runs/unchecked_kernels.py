"""Which hand-written kernels a comparison with eager checks, and which the run in eager launches, too."""

from __future__ import annotations

from tracing.analyze.runs.unlaunched import launched_kernels
from tracing.model import Compilation, Kernel, Outcome
from tracing.store import Run


def unchecked_kernels(run: Run) -> list[str]:
    """The names of hand-written kernels that a case launched both compiled and in eager, in launch order.

    A run without passes, or in which eager did not run, does not say what eager compiled: there a kernel
    counts that Inductor copied from a file of the user.
    """
    if run.info.kind != "case":
        return []
    with_eager = all(one.status != "compiled" for one in run.records(Outcome))
    compiled = list(run.records(Compilation)) if with_eager else []
    eager = {one.kernel_name for one in compiled if one.eager}
    names = (
        one.name
        for one in launched_kernels(run)
        if one.name in eager or (not compiled and one.copied and one.kind != "cpp")
    )
    return list(dict.fromkeys(names))


def checked_kernels(run: Run) -> list[Kernel]:
    """The hand-written kernels of compiled graphs that only the compiled case launched, in launch order."""
    unchecked = unchecked_kernels(run)
    checked = {
        one.name: one
        for one in launched_kernels(run)
        if one.copied and one.kind != "cpp" and one.name not in unchecked
    }
    return list(checked.values())
