"""Which launched kernels the run in eager launches, too: comparing with eager does not check them."""

from __future__ import annotations

from tracing.analyze.runs.unlaunched import launched_kernels
from tracing.model import Compilation
from tracing.store import Run


def unchecked_kernels(run: Run) -> list[str]:
    """The names of hand-written kernels that a case launched both compiled and in eager, in launch order.

    A run without passes does not say what eager compiled: there a kernel counts that Inductor copied from a
    file of the user.
    """
    if run.info.kind != "case":
        return []
    compiled = list(run.records(Compilation))
    eager = {one.kernel_name for one in compiled if one.eager}
    names = (
        one.name
        for one in launched_kernels(run)
        if one.name in eager or (not compiled and one.copied and one.kind != "cpp")
    )
    return list(dict.fromkeys(names))
