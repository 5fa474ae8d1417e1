"""Whether two runs are of the same program, which a comparison supposes."""

from __future__ import annotations

from tracing.model import RunInfo


def incomparable(a: RunInfo, b: RunInfo) -> str:
    """The reason why two runs are not of the same program (case or versions differ); "" if they are."""
    of_a, of_b = a.environment, b.environment
    facts = {
        "cases" if a.kind == b.kind == "case" else "programs": (a.case, b.case),
        "versions of torch": (of_a.torch, of_b.torch),
        "versions of Triton": (of_a.triton, of_b.triton),
        "targets": (of_a.target, of_b.target),
    }
    return "; ".join(f"{name}: {x} and {y}" for name, (x, y) in facts.items() if x != y)
