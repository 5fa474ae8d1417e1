"""An unreliable judge, asked several times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tracing.analyze.bisect.repeated_judge import Repeated, Votes, confidence
from tracing.analyze.bisect.search import JudgeAnswer, Judgement


class Says:
    """A judge that says one thing after the other."""

    key: Sequence[str] = ("says",)
    stages: Sequence[str] = ("ptx",)

    def __init__(self, verdicts: Sequence[JudgeAnswer]) -> None:
        self._verdicts = iter(verdicts)

    def __call__(self, folder: Path) -> Judgement:
        return Judgement(next(self._verdicts), "exit status 1")


@pytest.mark.parametrize(
    ("said", "verdict", "detail"),
    [
        ("bad bad bad", "bad", "exit status 1"),
        ("bad good bad", "bad", "exit status 1, 2 of 3 times"),
        ("good skip good", "good", "exit status 1, 2 of 3 times"),
        (
            "bad good skip",
            "skip",
            "the judge said bad 1 times and good 1 times and skip 1 times of one build",
        ),
    ],
)
def test_the_majority_of_answers_counts(said: str, verdict: str, detail: str, tmp_path: Path) -> None:
    judgement = Repeated(Says(said.split()), 3)(tmp_path)  # type: ignore[arg-type]

    assert (judgement.verdict, judgement.detail) == (verdict, detail)


def test_a_judge_has_a_new_identity_if_it_is_asked_more_often() -> None:
    assert Repeated(Says([]), 3).key != Repeated(Says([]), 5).key


def test_a_judge_that_never_contradicts_itself_is_trusted() -> None:
    estimate = confidence([Votes(15, 0), Votes(0, 15)] * 6)

    assert (estimate.against, estimate.calls) == (0, 180)
    assert estimate.wrong < 1e-9


def test_confidence_falls_with_contradictions_and_rises_with_calls() -> None:
    few, many = confidence([Votes(4, 1), Votes(1, 4)] * 6), confidence([Votes(13, 2), Votes(2, 13)] * 6)

    assert few.wrong > 0.2
    assert many.wrong < 1e-3
    assert 1 / 8 < many.error < 1 / 4


def test_a_judge_that_throws_a_coin_is_not_trusted() -> None:
    assert confidence([Votes(8, 7), Votes(7, 8)] * 6).wrong == 1.0
