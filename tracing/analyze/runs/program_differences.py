"""How the programs of two runs differ: a comparison supposes that they are the same, and read the same."""

from __future__ import annotations

from tracing.model import ReadVariable, RunInfo
from tracing.store import Run


def incomparable(a: RunInfo, b: RunInfo) -> str:
    """The reason why two runs are not of the same program (case or versions differ); "" if they are."""
    of_a, of_b = a.environment, b.environment
    same_code = a.kind == b.kind == "code" and a.path == b.path  # `tracing.recording(name=…)` names a run
    facts = {
        "cases" if a.kind == b.kind == "case" else "programs": ("", "") if same_code else (a.case, b.case),
        "versions of torch": (of_a.torch, of_b.torch),
        "versions of Triton": (of_a.triton, of_b.triton),
        "targets": (of_a.target, of_b.target),
    }
    return "; ".join(f"{name}: {x} and {y}" for name, (x, y) in facts.items() if x != y)


def other_variables(a: Run, b: Run) -> dict[str, tuple[str, str]]:
    """The environment variables that both programs read, and that had other values: by name, as text."""
    read = [{one.name: one for one in run.records(ReadVariable) if not one.redacted} for run in (a, b)]
    texts = {name: (_text(one), _text(read[1][name])) for name, one in read[0].items() if name in read[1]}
    return {name: (x, y) for name, (x, y) in texts.items() if x != y}


def _text(variable: ReadVariable) -> str:
    if variable.value is None:
        return "not set"
    return variable.value if variable.value.strip() else repr(variable.value)  # quoted if nothing is visible
