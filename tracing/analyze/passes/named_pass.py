"""Check the pass that a user names, before IR is derived and before a kernel is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracing.analyze.passes import pass_table
from tracing.analyze.passes.compilations import compilation, compilations, meant_compilations
from tracing.errors import Problem
from tracing.model import Compilation, PassStart
from tracing.store import Run


def require_named(run: Run, kernel: str | None, which: str | None, stage: str | None = None) -> None:
    """Raise Problem, with near names, unless a run has the kernel and the pass that a user names.

    which -- None: only a stage is named

    A pass that no kernel has is reported before one of several kernels is asked for. Reads only records that
    were written while kernels were compiled: no IR needs to be derived.
    """
    meant = meant_compilations(compilations(run), kernel)
    if len(meant) > 1:
        _require(_started(run, meant), which, stage, f"the {len(meant)} kernels have")
    if which is not None:
        meant = [compilation(run, kernel)]
    if len(meant) == 1:
        _require(_started(run, meant), which, stage, "this kernel has")


def require_in_a_kernel(runs: Sequence[Run], which: str, stage: str | None) -> None:
    """Raise Problem, with near names, unless a kernel of one of the runs has the pass that a user names."""
    passes = [one for run in runs for one in _started(run, compilations(run))]
    _require(passes, which, stage, "the kernels have")


def _require(passes: Sequence[PassStart], which: str | None, stage: str | None, owner: str) -> None:
    named = passes if which is None else pass_table.meant_passes(passes, which, stage)
    if not [one for one in named if stage in (None, one.stage)]:
        raise Problem(*pass_table.no_pass(passes, which, stage, owner))


def _started(run: Run, kernels: Iterable[Compilation]) -> list[PassStart]:
    hashes, passes = {one.hash for one in kernels}, list[PassStart]()
    for process in run.processes(PassStart):
        ids = {one.id for one in run.view(process, Compilation, Compilation) if one.hash in hashes}
        passes += [one for one in run.view(process, PassStart, PassStart) if one.compilation in ids]
    return passes
