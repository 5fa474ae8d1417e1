"""Which hand-written kernels a comparison with eager checks, and which the run in eager launches, too."""

from __future__ import annotations

from tracing.analyze.runs.unlaunched import launched_kernels
from tracing.model import Compilation, Kernel, Outcome
from tracing.store import Run


def unchecked_kernels(run: Run) -> list[str]:
    """The names of hand-written kernels that a case launched both compiled and in eager, in launch order.

    Where that is not known, a kernel counts that Inductor copied from a file of the user.
    """
    if run.info.kind != "case":
        return []
    compiled = list(run.records(Compilation)) if knows_eager(run) else []
    eager = {one.kernel_name for one in compiled if one.eager}
    names = (
        one.name
        for one in launched_kernels(run)
        if one.name in eager or (not compiled and one.copied and one.kind != "cpp")
    )
    return list(dict.fromkeys(names))


def knows_eager(run: Run) -> bool:
    """True if a run says which kernels eager launched: it has passes, and eager ran."""
    with_eager = all(one.status != "compiled" for one in run.records(Outcome))
    return with_eager and any(run.records(Compilation))


def checked_kernels(run: Run) -> list[Kernel]:
    """The hand-written kernels of compiled graphs that only the compiled case launched, in launch order."""
    unchecked = unchecked_kernels(run)
    checked = {
        one.name: one
        for one in launched_kernels(run)
        if one.copied and one.kind != "cpp" and one.name not in unchecked
    }
    return list(checked.values())
