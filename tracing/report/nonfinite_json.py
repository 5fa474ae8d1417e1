"""The first NaN or inf of a run, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracing.analyze.nonfinite.data_events import DataEvent, NonFiniteTensor
from tracing.analyze.nonfinite.nonfinite_answer import NonFiniteAnswer
from tracing.analyze.nonfinite.nonfinite_elements import ranges
from tracing.analyze.nonfinite.nonfinite_operator import NonFiniteOperator
from tracing.model import KernelLaunch
from tracing.model.numbers import number_text
from tracing.report.nonfinite import first_text, undecided_text


def nonfinite_json(
    run: str,
    answer: NonFiniteAnswer,
    elements: dict[str, list[int]],
    commands: Sequence[str],
    operators: Sequence[NonFiniteOperator] = (),
) -> dict[str, Any]:
    """The answer as data; keys as in docs/json.md."""
    origin = answer.origin
    return {
        "run": run,
        "status": answer.status,
        "origin": _event_json(origin.event) if origin else None,
        "later": _event_json(answer.later) if answer.later else None,
        "made": origin.made if origin else None,
        "verb": origin.verb if origin else None,
        "first": first_text(origin, answer.kind) if origin else None,
        "numbers": list(origin.event.bad_numbers("any")) if origin else [],
        "tensors": [_tensor_json(one, elements) for one in origin.tensors] if origin else [],
        "computes": [f"{one.file}:{one.line}" for one in origin.computes] if origin else [],
        "made_by": [_operator_json(one) for one in operators],
        "chain": [_event_json(one) for one in origin.chain] if origin else [],
        "carriers": origin.carriers if origin else 0,
        "carriers_known": origin.carriers_known if origin else True,
        "launches": answer.launches,
        "operators": answer.operators,
        "unknown": [*undecided_text(answer), *answer.unknown],
        "record": answer.record,
        "next": list(commands),
    }


def _operator_json(operator: NonFiniteOperator) -> dict[str, Any]:
    line = operator.line
    return {
        "makes": operator.makes,
        "name": operator.name,
        "line": f"{line.file}:{line.line}" if line is not None else None,
        "index": list(operator.index),
        "operands": [number_text(one) for one in operator.operands],
        "backward": operator.backward,
        "stored": operator.stored,
    }


def _event_json(event: DataEvent) -> dict[str, Any]:
    site = event.source.site
    launch = event.source if isinstance(event.source, KernelLaunch) else None
    return {
        "kind": "launch" if launch else "operator",
        "index": event.source.index,
        "name": event.name,
        "rank": event.rank,
        "step": list(launch.step) if launch and launch.step else None,
        "site": f"{site.file}:{site.line}" if site else None,
    }


def _tensor_json(one: NonFiniteTensor, elements: dict[str, list[int]]) -> dict[str, Any]:
    known = elements.get(one.name)
    return {
        "name": one.name,
        "position": one.position,
        "dtype": one.meta.dtype,
        "shape": list(one.meta.shape),
        "nan": one.digest.nan if one.digest else None,
        "inf": one.digest.inf if one.digest else None,
        "elements": [list(pair) for pair in ranges(known)] if known is not None else None,
    }
