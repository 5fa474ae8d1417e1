"""How an answer of `tracing compare --json` is judged right or wrong, given the truth."""

from __future__ import annotations

from typing import Any

import pytest
from faults.answers import Answer, Verdict, judged, judged_equal
from faults.truths import Accusation, Reader, Truth

TRUTH = Truth(accusations=(Accusation("code", "scale"),), launch=1)
HOST = Truth(accusations=(Accusation("host"),), runs="b", reader=Reader("shift", "in_ptr", 2))
IDLE = Truth(accusations=(Accusation("code", "scale"),), before=(Accusation("missing", "idle"),))


def divergence(kind: str, name: str = "", **more: Any) -> dict[str, Any]:
    accused = {"kind": kind, "name": name, "certain": True, "launch": {"a": 1, "b": 1}, "decides": None}
    return {"kind": "input", "launch": {"a": 2, "b": 2}, "kernel": "shift", "argument": "in_ptr"} | {
        "accused": accused | more
    }


def said(status: int, *divergences: dict[str, Any], **more: Any) -> Answer:
    return Answer(status, {"status": status, "divergences": divergences} | more, "")


@pytest.mark.parametrize(
    ("answer", "truth", "verdict"),
    [
        (said(1, divergence("code", "scale")), TRUTH, Verdict.RIGHT),
        (said(1, divergence("code", "shift")), TRUTH, Verdict.ACCUSED),
        (said(1, divergence("kernel", "scale")), TRUTH, Verdict.ACCUSED),
        (said(1, divergence("code", "scale", launch={"a": 0, "b": 0})), TRUTH, Verdict.ACCUSED),
        (said(1, divergence("code", "scale"), divergence("host", runs="b")), TRUTH, Verdict.ACCUSED),
        (said(0), TRUTH, Verdict.MISSED),
        (said(2), TRUTH, Verdict.UNCERTAIN),
        (said(1, divergence("code", "scale")), Truth(equal=True), Verdict.INVENTED),
        (said(1, divergence("code", "scale")), Truth(in_part=True), Verdict.INVENTED),
        (said(0), Truth(in_part=True), Verdict.MISSED),
        (said(2), Truth(in_part=True), Verdict.RIGHT),
        (said(1, divergence("host", runs="b")), HOST, Verdict.RIGHT),
        (said(1, divergence("host", runs="a")), HOST, Verdict.ACCUSED),
        (said(1, divergence("host", runs="b") | {"kernel": "other"}), HOST, Verdict.ACCUSED),
        (said(1, divergence("missing", "idle"), divergence("code", "scale")), IDLE, Verdict.RIGHT),
        (said(1, divergence("missing", "idle")), IDLE, Verdict.MISSED),
        (said(1, results=[{}]), Truth(accusations=(Accusation("result"),)), Verdict.RIGHT),
        (said(1, results=[{}]), TRUTH, Verdict.ACCUSED),
        (Answer(2, {}, "Traceback"), TRUTH, Verdict.BROKEN),
        (Answer(1, {"status": 0, "divergences": []}, ""), TRUTH, Verdict.BROKEN),
    ],
)
def test_an_answer_is_judged_by_what_is_true(answer: Answer, truth: Truth, verdict: Verdict) -> None:
    assert judged(answer, truth) is verdict


@pytest.mark.parametrize(
    ("decides", "allowed", "verdict"),
    [
        ("tracing x", True, Verdict.UNDECIDED),
        ("tracing x", False, Verdict.UNCERTAIN),
        (None, True, Verdict.ACCUSED),
    ],
)
def test_undecided_is_right_if_the_truth_allows_it_and_a_command_decides(
    decides: str | None, allowed: bool, verdict: Verdict
) -> None:
    truth = Truth(accusations=(Accusation("host"),), undecided=allowed)
    answer = said(1, divergence("operator", "aten::mm", certain=False, decides=decides))

    assert judged(answer, truth) is verdict


def test_two_runs_that_fail_alike_are_compared_in_part() -> None:
    assert judged_equal(said(2), failing=True) is Verdict.RIGHT
    assert judged_equal(said(0), failing=True) is Verdict.UNCERTAIN
    assert judged_equal(said(0), failing=False) is Verdict.RIGHT
    assert judged_equal(said(1, divergence("host")), failing=False) is Verdict.INVENTED
