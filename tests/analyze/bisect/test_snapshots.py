"""The border between good and bad IR, for a judge that reads each IR between passes."""

from __future__ import annotations

import pytest

from tracing.analyze.bisect.search import JudgeAnswer, Judgement, Step, answer_of
from tracing.analyze.bisect.snapshots import (
    FirstSeen,
    JudgedSnapshot,
    NoBorder,
    Snapshot,
    first_seen,
    looked_at,
)

VERDICTS: dict[str, JudgeAnswer] = {"g": "good", "b": "bad", "?": "skip"}


def seen(verdicts: str) -> list[JudgedSnapshot]:
    return [
        JudgedSnapshot(
            Snapshot("MLIR passes", Step(at, f"pass-{at}"), "ttgir", f"ir {at}"), Judgement(VERDICTS[one])
        )
        for at, one in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "border", "between", "odd"),
    [("ggbb", (1, 2), 0, 0), ("g??b", (0, 3), 2, 0), ("bggb", (2, 3), 0, 1), ("?g?bb?", (1, 3), 1, 0)],
)
def test_the_border_between_good_and_bad_is_found(
    verdicts: str, border: tuple[int, int], between: int, odd: int
) -> None:
    result = first_seen(seen(verdicts))

    assert isinstance(result, FirstSeen)
    assert (result.good.snapshot.step.index, result.bad.snapshot.step.index) == border
    assert (len(result.between), len(result.odd)) == (between, odd)


@pytest.mark.parametrize(
    ("verdicts", "because"),
    [
        ("gbgb", "good IR turns bad 2 times"),
        ("bbb", "all 3 IRs that can be judged are bad"),
        ("g?g", "all 2 IRs that can be judged are good"),
        ("bg", "bad IR turns good, and none turns bad"),
        ("??", "the judge could judge no IR"),
    ],
)
def test_several_borders_between_good_and_bad_are_reported(verdicts: str, because: str) -> None:
    result = first_seen(seen(verdicts))

    assert isinstance(result, NoBorder)
    assert because in result.because


def test_equal_ir_is_judged_once() -> None:
    asked: list[str] = []

    def judged(one: Snapshot) -> Judgement:
        asked.append(one.text)
        return Judgement("good")

    row = [Snapshot("MLIR passes", Step(at, "cse"), "ttir", text) for at, text in enumerate("aabba")]

    assert len(answer_of(looked_at(row, judged))) == 3
    assert asked == ["a", "b", "a"]
