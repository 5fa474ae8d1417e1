"""A bisection as data: the output of `tracing bisect --json`; docs/json.md documents its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracing.analyze.bisect.search import Changed, FirstBad, Step, Suspect, Undecided
from tracing.analyze.bisect.search_events import Answer, Answered, FullPipeline, NoAnswer, SearchEvent
from tracing.analyze.bisect.snapshots import FirstSeen


def bisection_json(events: Sequence[SearchEvent]) -> dict[str, Any]:
    """The verdict on the full pipeline, the answer of each layer, and the accused pass."""
    full = next(one.judgement for one in events if isinstance(one, FullPipeline))
    answers = [_answer(one.weighed) for one in events if isinstance(one, Answered)]
    end = next((one for one in events if isinstance(one, NoAnswer)), None)
    accused = answers[-1] if answers and end is None else None
    return {
        "full": {"verdict": full.verdict, "detail": full.detail},
        "layers": answers,
        "accused": {"layer": accused["layer"], **accused["step"]} if accused else None,
        "suspects": [suspect_json(one) for one in end.suspects] if end else [],
        "rest": list(end.rest) if end else [],
    }


def _answer(one: Answer) -> dict[str, Any]:
    if isinstance(one, Undecided):
        return {"layer": one.layer, "answer": "ruled out" if one.ruled_out else "undecided", "step": None,
                "because": one.because}  # fmt: skip
    if isinstance(one, FirstSeen):
        bad = one.bad
        return {"layer": bad.snapshot.layer, "answer": "first bad IR", "step": step_json(bad.snapshot.step),
                "because": bad.judgement.detail}  # fmt: skip
    because, kind = _because(one)
    return {"layer": one.layer, "answer": kind, "step": step_json(one.step), "because": because}


def _because(one: FirstBad | Changed) -> tuple[str, str]:
    if isinstance(one, Changed):
        return one.what, "changes what the IR computes"
    return one.bad.detail, "first bad"


def suspect_json(one: Suspect) -> dict[str, Any]:
    """A pass that is not ruled out, and why."""
    return {**step_json(one.step), "why": one.why}


def step_json(step: Step) -> dict[str, Any]:
    """A pass."""
    return {"index": step.index, "name": step.name, "unit": step.unit}
