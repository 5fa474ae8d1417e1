"""What a judgement concludes from its launches and the run's outcome."""

from __future__ import annotations

from typing import Literal

import pytest

from tracing.analyze.judge.judgement import JudgedLaunch, LaunchVerdict, RunJudgement
from tracing.model import Outcome
from tracing.report.judgement import judgement_text


@pytest.mark.parametrize(
    ("verdicts", "outcome", "status"),
    [
        (["right"], "passed", 0),
        (["right"], "differs", 2),
        (["right", "off"], "differs", 1),
        (["no reference"], "passed", 2),
    ],
)
def test_right_launches_are_no_answer_if_the_results_differ(
    verdicts: list[LaunchVerdict], outcome: Literal["passed", "differs"], status: int
) -> None:
    launches = tuple(JudgedLaunch(number, "add", 0, verdict) for number, verdict in enumerate(verdicts))
    judgement = RunJudgement(launches, (), (), Outcome(outcome, ""))
    unexplained = "the results differ from eager, and no launch that was judged explains it"

    assert judgement.status == status
    assert (unexplained in [*judgement_text(judgement, [])]) == (outcome == "differs" and status == 2)
