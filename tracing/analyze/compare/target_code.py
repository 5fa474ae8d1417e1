"""Compare the code that two runs compiled for different targets, which launches of a virtual GPU do not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracing.analyze.compare.kernel_code import KernelCodes
from tracing.model import Kernel
from tracing.store import Run


@dataclass(frozen=True, slots=True)
class TargetCode:
    """A kernel that both runs compiled, each for its target."""

    kernel: str  # name
    stage: str | None  # the first recorded stage whose text differs, "ttir"; None: every common one is equal


def target_codes(a: Run, b: Run) -> list[TargetCode]:
    """The kernels of equal name and configuration in both runs; empty if the targets are equal.

    Raises Problem if the text of a stage is lost. Cost: reads the stages of each kernel up to the first
    that differs.
    """
    if a.info.environment.target == b.info.environment.target:
        return []
    codes, of_b = KernelCodes(a, b), list(b.records(Kernel))
    known: dict[tuple[str, str], TargetCode] = {}
    for kernel in a.records(Kernel):
        partners = [one for one in of_b if codes.differ_in_target_only(kernel, one)]
        if partners and (kernel.name, kernel.hash) not in known:
            stages = [codes.first_stage(kernel, one) for one in partners]
            known[kernel.name, kernel.hash] = TargetCode(kernel.name, _best(stages))
    return list(known.values())


def _best(stages: Sequence[str | None]) -> str | None:
    return None if None in stages else stages[0]
