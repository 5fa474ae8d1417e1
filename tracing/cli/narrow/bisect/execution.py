"""Execute the IR after each pass of a compilation, parsed by Triton's own parser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracing import store
from tracing.analyze.bisect.execution import LARGE, Meaning, argument_names, first_change, tolerance
from tracing.analyze.bisect.snapshots import Snapshot
from tracing.compiler.generic_text import generic_texts
from tracing.errors import Problem
from tracing.mlir.machine import MachineLaunch
from tracing.mlir.types import Unknown
from tracing.model import Signature

_SIGNATURES = 2  # of a kernel's launches whose scalars are taken


def signatures_of(run: store.Run, kernel_hash: str) -> list[Signature]:
    """The first signatures with which a run launched a kernel."""
    every = (pair for process in run.processes() for pair in run.signatures(process).values())
    return [signature for kernel, signature in every if kernel.hash == kernel_hash][:_SIGNATURES]


def meaning_of(snapshots: Sequence[Snapshot], signatures: Sequence[Signature], seconds: float) -> Meaning:
    """Execute the IR after each pass, as far as that is needed.

    snapshots  -- of MLIR, in order; the first enters the compilation
    signatures -- of recorded launches

    Cost: two executions where nothing changes, some ten otherwise; 0.1 to 5 s.
    """
    row = [one for at, one in enumerate(snapshots) if at == 0 or one.text != snapshots[at - 1].text]
    try:
        texts = generic_texts([one.text for one in row], seconds=seconds)
        names = argument_names(row[0].text)
        recorded = [one for signature in signatures for one in _launches(signature, names)]
        change = first_change(len(row), texts.__getitem__, names, recorded)
    except (Problem, Unknown) as error:
        return Meaning(why=str(error))
    if isinstance(change, int):
        return Meaning(last=row[change].step, tolerance=tolerance(texts[0]))
    return Meaning(tuple(one.step for one in row[change.before + 1 : change.after + 1]), change.what)


def _launches(signature: Signature, names: Sequence[str]) -> list[MachineLaunch]:
    # the first and the last program of a recorded launch, on small and on large numbers
    values = {one.name: one.value for one in signature.args if isinstance(one.value, (bool, int, float))}
    scalars = {at: values[name] for at, name in enumerate(names) if name in values}
    x, y, z = signature.grid
    launch = MachineLaunch(0, (0, 0, 0), signature.grid, scalars)
    return [launch, replace(launch, program=(x - 1, y - 1, z - 1), magnitude=LARGE)]
