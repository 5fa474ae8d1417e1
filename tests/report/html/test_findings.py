"""The first screen of a report: which answers of commands it shows."""

from __future__ import annotations

from typing import Any

from tracing.report.html.findings import findings


def answer(status: int, line: str) -> dict[str, Any]:
    facts = {"name": "bisect", "kernel": "k", "next": [], "launch": None, "rank": 0}
    return {**facts, "status": status, "lines": [line]}


NO_NAN = {"origin": None, "later": None, "next": []}


def titles(*answers: dict[str, Any], status: str = "passed", nan: dict[str, Any] = NO_NAN) -> list[str]:
    outcome = {"name": "k", "status": status, "detail": ""}
    run = {
        "answers": answers, "kernels": [], "failures": [], "outcomes": [outcome],
        "growing": False, "nan": nan, "evidence": [], "winners": [], "violations": [], "cut": [],
        "next": [],
    }  # fmt: skip
    return [one["title"] for one in findings([run], None)]


def test_a_later_good_answer_does_not_hide_an_accusation() -> None:
    assert titles(answer(1, "bad"), answer(0, "good")) == ["bisect: bad"]


def test_the_latest_accusation_is_shown() -> None:
    assert titles(answer(1, "one pass"), answer(2, "undecided"), answer(1, "other pass")) == [
        "bisect: other pass"
    ]


def test_an_outcome_that_is_not_decided_is_a_finding() -> None:
    assert titles(status="not decided") == ["exact arithmetic does not decide which result is wrong"]


def test_a_good_answer_follows_one_that_was_not_decided() -> None:
    assert titles(answer(2, "undecided"), answer(0, "good")) == ["nothing was found"]


def test_a_launch_that_makes_a_nan_after_an_unknown_one_is_a_finding() -> None:
    later = {"kind": "launch", "index": 3, "name": "k", "rank": 0, "step": None, "site": "train.py:7"}

    assert titles(nan={**NO_NAN, "later": later}) == ["launch #3 k makes NaN or inf of finite values"]
