"""The wrong programs of upstream threads: each command's answer contains what is true.

    python -m pytest tests/soak/test_upstream_bugs.py

Some 60 minutes. tests/upstream_bugs.py writes the table of docs/upstream_bugs.md.
"""

from __future__ import annotations

import pytest
from upstream_bugs import BUGS, Bug, accusation, bisect_answer, judge_answer, run_answer

JUDGED = [bug for bug in BUGS if bug.judge]
BISECTED = [bug for bug in BUGS if bug.bisect]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.case)
def test_run_sees_what_is_wrong(bug: Bug) -> None:
    assert bug.run in run_answer(bug)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", JUDGED, ids=lambda bug: bug.case)
def test_judge_names_the_launch_or_the_node(bug: Bug) -> None:
    assert bug.judge in judge_answer(bug)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bug", BISECTED, ids=lambda bug: bug.case)
def test_bisect_names_what_the_upstream_fix_names(bug: Bug) -> None:
    text = bisect_answer(bug)

    assert bug.bisect in accusation(text), text
