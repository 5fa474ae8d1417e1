"""Open a run for its passes; IR that its recording did not derive is derived first."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from tracing import store
from tracing.analyze.passes.named_pass import require_named
from tracing.cli.app import err, spinner
from tracing.cli.options.opened import open_run
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import consenting
from tracing.model import Derivation, PassRecord
from tracing.report.text import plural


def open_derived(
    name: str,
    runs: Path,
    kernel: str | None = None,
    which: str | None = None,
    stage: str | None = None,
    *,
    trust: bool = False,
) -> store.Run:
    """Open a run as `store.open_run` does, with the IR before and after every pass.

    IR that was not derived, because the process died or was interrupted, is derived now; failures are
    reported. A run that is still being recorded, or that this user may not write, is not changed: the derived
    IR is deleted when this process ends. Kernels that a run compiles after this call are left out.

    kernel, which, stage -- the pass that the user names; a name that the run lacks is refused before IR is
                            derived
    trust               -- the user consents to compile the IR of a run that another user recorded

    Raises Problem if another version of Triton is installed than recorded the run, or without this consent.
    """
    run = consenting(open_run(name, runs), trust)
    if which is not None or stage is not None:
        require_named(run, kernel, which, stage)
    run.growing = store.being_recorded(run.path)
    if run.growing:
        err.print(f"{run.path} is still being recorded: kernels that are being compiled are left out")
    if run.growing or not os.access(run.path, os.W_OK):
        run.use_scratch()
    missed = _derived(run, waiting) if (waiting := len(run.underived())) else []
    known = [one for one in run.records(Derivation) if one.differs]
    if missed:
        _note(run, missed)
    for one in (*known, *missed):
        warn(one)
    return run


def pass_on_recorded_ir(one: PassRecord) -> str:
    """What is executed to stop in a pass, for `store.Run.require_trust`."""
    return f"pass {one.index} of Triton's compiler, {one.name}, on its IR"


def warn(one: Derivation) -> None:
    """Warn that a repeated compilation differs from the recorded one."""
    err.print(
        f"warning: compilation {one.compilation} of process {one.process} differs when it is "
        f"repeated: {one.differs}\n"
        "  `tracing run --ir during` records the IR as the passes run",
    )


def _derived(run: store.Run, waiting: int) -> list[Derivation]:
    # returns those that did not end in time, which the next command derives
    require_same_triton(run, "open it", f"the IR of {plural(waiting, 'compilation')} is not derived yet")
    passes = f"derive it with `tracing passes {quote(str(run.path))} --trust`"
    run.require_trust(f"Triton's compiler on the IR of {plural(waiting, 'compilation')}", passes)
    with spinner(f"deriving the IR of {plural(waiting, 'compilation')}") as now:
        from tracing.record.passes.derivation import derive

        def progress(done: int, of: int) -> None:
            now(f"IR of compilations: {done} of {of}")

        derivations = derive(run.path, progress=progress, scratch=run.scratch)
    left = {(process, one.id) for process, one in run.underived()}
    return [one for one in derivations if (one.process, one.compilation) in left]


def _note(run: store.Run, missed: Iterable[Derivation]) -> None:
    # only for this process, which has tried already
    writer = store.RunWriter(run.use_scratch())
    for one in missed:
        writer.append(one)
    writer.close()
