"""Compare the code that two runs compiled for different targets, which equal values do not show."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.errors import Problem
from tracing.model import Kernel
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class TargetCode:
    """A kernel of equal constants and options in both runs, each compiled for its run's target."""

    kernel: str  # name
    stage: str | None  # the first stage recorded of both whose text differs, "ttir"; None: none does
    lost: str = ""  # the reason why the code could not be read


def target_codes(a: Run, b: Run) -> list[TargetCode]:
    """The kernels that both runs compiled for their targets; empty if the targets are equal.

    Cost: reads the stages of each kernel up to the first that differs.
    """
    if a.info.environment.target == b.info.environment.target:
        return []
    codes, of_b = KernelCodes(a, b), list(b.records(Kernel))
    known: dict[str, TargetCode] = {}
    for kernel in {one.hash: one for one in a.records(Kernel)}.values():
        partners = [one for one in of_b if codes.differ_at_most_in_target(kernel, one)]
        if partners:
            known[kernel.hash] = _target_code(codes, kernel, partners)
    return list(known.values())


def _target_code(codes: KernelCodes, kernel: Kernel, partners: list[Kernel]) -> TargetCode:
    # of equal constants and options are also variants for arguments of other types or alignment
    try:
        stages = [codes.first_unlike_stage(kernel, one) for one in partners]
    except Problem as problem:
        return TargetCode(kernel.name, None, problem.problem)
    return TargetCode(kernel.name, None if None in stages else stages[0])
