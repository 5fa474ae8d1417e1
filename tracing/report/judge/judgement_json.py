"""The judgement of a run as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from tracing.analyze.judge.judgement import RunJudgement
from tracing.report.judge.findings import KINDS


def judgement_json(judgement: RunJudgement) -> dict[str, Any]:
    """The judgement as JSON; keys as in docs/json.md."""
    launches = [_plain(one) for one in judgement.launches]
    findings = [{"kind": KINDS[type(one)], **_plain(one)} for one in judgement.findings]
    accused = judgement.accused
    return {
        "status": judgement.status,
        "accused": None if accused is None else accused.launch,
        "undeclared": [*judgement.undeclared],
        "suspects": [one.launch for one in judgement.suspects],
        "only_gradients": judgement.forward_of_gradients,
        "laid_out": [*judgement.laid_out],
        "unchecked": judgement.unchecked,
        "unchecked_backwards": [*judgement.formulas],
        "less_precise": [*judgement.less_precise],
        "other_contents": judgement.other_contents,
        "launches": launches,
        "findings": findings,
        "not_covered": [*judgement.not_covered],
    }


def _plain(one: object) -> dict[str, Any]:
    def special(value: object) -> Any:
        return str(value) if isinstance(value, complex) else value

    plain: dict[str, Any] = msgspec.to_builtins(one, enc_hook=special)
    plain["lines"] = [
        {"file": line.file, "line": line.line, "function": line.function, "code": line.code}
        for line in getattr(one, "lines", ())
    ]
    return plain
