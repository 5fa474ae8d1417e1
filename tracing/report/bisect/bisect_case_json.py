"""The search of a case as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracing.analyze.bisect.search import Judgement
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseEvent,
    CaseTried,
    Culprit,
    OtherCode,
    PartTried,
    PartUndecided,
    StageTried,
    TogetherBlamed,
)
from tracing.analyze.bisect_case.evaluation import CompileStep
from tracing.report.bisect.bisect_case import accused


def case_search_json(events: Sequence[CaseEvent], sources: Mapping[str, str]) -> dict[str, Any]:
    """The builds of the search, and its answer; keys as in docs/json.md.

    sources -- path of the source of each kernel, by name
    """
    reproduced = next(one for one in events if isinstance(one, CaseTried))
    answer = next((one for one in events if isinstance(one, CaseAnswer)), None)
    return {
        "symptom": {
            "kind": reproduced.symptom.kind,
            "text": reproduced.symptom.text,
            "by_tolerances": reproduced.symptom.by_tolerances,
        },
        "unchecked_kernels": [one.name for one in reproduced.eager_kernels],
        "wrong": reproduced.bad,
        "compiles": reproduced.of,
        "tried": [_tried(one) for one in events if isinstance(one, (StageTried, PartTried))],
        "accused": accused(answer) if answer else None,
        "stage": answer.stage.name if answer else None,
        "own_kernels": [
            {"name": one.name, "python": one.python} for one in (answer.own_kernels if answer else ())
        ],
        "culprits": [_culprit(one) for one in answer.culprits] if answer else [],
        "cpp": next((_judged(one.judgement) for one in events if isinstance(one, OtherCode)), None),
        "kernels": [
            {"name": one.name, "nodes": list(one.nodes), "source": sources[one.name]}
            for one in (answer.kernels if answer else ())
        ],
    }


def _tried(event: StageTried | PartTried) -> dict[str, Any]:
    if isinstance(event, StageTried):
        return {"stage": event.stage.name, "part": None, "steps": None, **_judged(event.judgement)}
    return {"stage": None, "part": event.part, "steps": event.count or None, **_judged(event.judgement)}


def _culprit(one: Culprit | PartUndecided | TogetherBlamed) -> dict[str, Any]:
    if isinstance(one, TogetherBlamed):
        return {"parts": list(one.parts), "steps": [], "without": _judged(one.good), "enough": None}
    if isinstance(one, PartUndecided):
        return {"parts": [one.part], "steps": [], "without": None, "enough": None}
    return {
        "parts": [one.part],
        "steps": [_step(step) for step in one.steps],
        "without": _judged(one.good),
        "enough": _judged(one.enough),
    }


def _step(step: CompileStep) -> dict[str, Any]:
    return {"label": step.label, "kind": step.kind, "detail": step.detail, "nodes": list(step.nodes)}


def _judged(judgement: Judgement) -> dict[str, Any]:
    return {"verdict": judgement.verdict, "detail": judgement.detail}
