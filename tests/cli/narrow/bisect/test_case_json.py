"""What `tracing bisect CASE --json` prints has exactly the keys that docs/json.md documents."""

from __future__ import annotations

import json

from documents.json_keys import require_documented

from tracing.analyze.bisect.search import Judgement
from tracing.analyze.bisect_case.case_events import (
    CaseAnswer,
    CaseTried,
    Culprit,
    OtherCode,
    PartTried,
    StageTried,
)
from tracing.analyze.bisect_case.evaluation import CompileStep, OwnKernel, WrittenKernel
from tracing.analyze.bisect_case.stages import INDUCTOR, LOWERINGS, stage
from tracing.analyze.bisect_case.symptom import Symptom
from tracing.report.bisect.bisect_case_json import case_search_json


def test_bisect_of_a_case() -> None:
    symptom, bad, good = Symptom("differs", "output is off"), Judgement("bad", "off"), Judgement("good", "")
    culprit = Culprit(LOWERINGS, (CompileStep("sin", "aten.sin", "", ("sin",)),), 3, good, bad)
    kernel = WrittenKernel("triton_0", "source", ("sin",))
    own = (OwnKernel("rowmean", "case.py:9"),)
    events = [
        CaseTried(symptom, 1, 1, 1), StageTried(stage(INDUCTOR), bad), PartTried(LOWERINGS, 3, good), culprit,
        OtherCode(good),
        CaseAnswer(symptom, stage(INDUCTOR), [culprit], (kernel,), own_kernels=own),
    ]  # fmt: skip
    answer = {"case": "wrong", "status": 1, "passes": {"kernel": "triton_0"}, "built": 7, "known": 0}

    text = json.dumps({**answer, **case_search_json(events, {"triton_0": "runs/triton_0.py"})})

    require_documented(text, "## `tracing bisect CASE`")
