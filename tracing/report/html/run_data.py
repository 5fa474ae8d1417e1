"""The part of a report about a run as a whole: program, environment, ending, coverage, choices, checks."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from tracing.analyze.memory.evidence import evidence_sentence
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.analyze.runs.results import results, value_text
from tracing.analyze.runs.winners import choices
from tracing.model import (
    CheckedGraph,
    Failure,
    FrameCompile,
    KeptAnswer,
    MemoryEvidence,
    Outcome,
    Perturbed,
    ReadVariable,
    Violation,
)
from tracing.report.failure import failure_text
from tracing.report.findings import cut_text
from tracing.report.run_json import summary_json, winners_json
from tracing.store import Run

ANSWERS = 50  # that a report holds of one run, the latest
PARTS = 50  # tables, bars or heat maps that it holds of one answer
CELLS = 64  # rows and columns of a heat map
SHOWN = 1000  # guards, violations or items of evidence that a report holds of one run


def run_data(run: Run, evidence: list[tuple[int, MemoryEvidence]]) -> dict[str, Any]:
    """A run without its launches and kernels.

    evidence -- its memory evidence, each with the rank
    """
    info, environment = run.info, run.info.environment
    return {
        **run_summary(run),
        "recorded": {"digests": info.digests, "operators": info.operators},
        "python": environment.python,
        "host": environment.host,
        "platform": environment.platform,
        "knobs": dict(environment.knobs),
        "variables": [[one.name, _variable(one)] for one in run.records(ReadVariable)],
        "not_covered": [{"what": one.what, "setting": one.setting} for one in not_covered(run)],
        "cut": [line.plain for line in cut_text([run])],
        "failures": [_failure(run, one) for one in run.records(Failure)],
        "evidence": [
            {"rank": rank, "launch": one.launch, "text": evidence_sentence(one)}
            for rank, one in evidence[:SHOWN]
        ],
        "perturbed": [
            {"what": one.what, "how": one.how, "why_not": one.why_not} for one in run.records(Perturbed)
        ],
        "results": [
            {"rank": rank, "name": name, "value": value_text(value)}
            for (rank, name), value in list(results(run).items())[:SHOWN]
        ],
        "winners": winners_json(run, choices(run))["choices"],
        "violations": [_violation(one) for one in list(run.records(Violation))[:SHOWN]],
        "answers": [_answer(one) for one in sorted(run.records(KeptAnswer), key=_asked)[-ANSWERS:]],
        "frames": [_frame(one) for one in list(run.records(FrameCompile))[:SHOWN]],
    }


def run_summary(run: Run) -> dict[str, Any]:
    """What the first screen says of a run."""
    info = run.info
    return {
        **summary_json(run),
        "kind": info.kind,
        "case_path": info.path,
        "program": list(info.program) or list(info.argv),
        "seed": info.seed,
        "world_size": info.world_size,
        "constraints": _constraints(run),
        "outcomes": [
            {"status": one.status, "detail": one.detail, "traceback": one.traceback}
            for one in run.records(Outcome)
        ],
    }


def _constraints(run: Run) -> dict[str, dict[str, int]]:
    # counts of violations by the kind of constraint, also of kinds that nothing violates
    checked = (text for graph in run.records(CheckedGraph) for text in graph.constraints)
    counts = {_kind(text): {"violated": 0, "undecided": 0} for text in checked}
    for one in run.records(Violation):
        count = counts.setdefault(_kind(one.constraint), {"violated": 0, "undecided": 0})
        count["violated" if one.decided else "undecided"] += 1
    return counts


def _kind(constraint: str) -> str:
    return constraint.partition("(")[0]  # "ShapeConstraint(alignment=8)"


def _variable(one: ReadVariable) -> str:
    return "not recorded" if one.redacted else "not set" if one.value is None else one.value


def _failure(run: Run, one: Failure) -> dict[str, Any]:
    return {
        "kind": one.kind, "name": one.name, "reason": one.reason, "python": one.python, "code": one.code,
        "step": one.step, "stage": one.stage, "nodes": one.nodes,
        "source": [line.plain for line in failure_text(one, run.text)],
    }  # fmt: skip


def _violation(one: Violation) -> dict[str, Any]:
    return {
        "constraint": one.constraint, "node": one.node, "operator": one.operator, "found": one.found,
        "required": one.required, "decided": one.decided, "python": one.python, "code": one.code,
    }  # fmt: skip


def _asked(one: KeptAnswer) -> str:
    return one.asked


def _answer(one: KeptAnswer) -> dict[str, Any]:
    tables = [replace(part, rows=part.rows[:SHOWN]) for part in one.tables[:PARTS]]
    bars = [replace(part, bars=part.bars[:SHOWN]) for part in one.bars[:PARTS]]
    heat = [replace(part, cells=[row[:CELLS] for row in part.cells[:CELLS]]) for part in one.heat[:PARTS]]
    parts: dict[str, list[Any]] = {"tables": tables, "bars": bars, "heat": heat}
    return {
        "name": one.name, "command": one.command, "version": one.version, "asked": one.asked,
        "status": one.status, "lines": list(one.lines[:SHOWN]), "next": list(one.next), "rank": one.rank,
        "launch": one.launch, "kernel": one.kernel,
        **{name: [asdict(part) for part in all] for name, all in parts.items()},
    }  # fmt: skip


def _frame(one: FrameCompile) -> dict[str, Any]:
    failed = "the compile failed: " if one.raised else ""
    return {
        "compile_id": one.compile_id,
        "function": one.function,
        "python": one.python,
        "operators": one.operators,
        "guards": [{"code": guard.code, "python": guard.python} for guard in one.guards[:SHOWN]],
        "breaks": [
            {"reason": f"{failed}{each.reason}", "python": each.python, "line": each.line}
            for each in one.breaks
        ],
        "failed": [{"compile_id": each.compile_id, "code": each.guard.code} for each in one.failed],
        "eager": "" if one.raised else one.eager or one.limit,
    }
