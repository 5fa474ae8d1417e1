"""The one place where good IR turns bad, where a judge looks at each."""

from __future__ import annotations

import pytest

from tracing.analyze.bisect.search import Judgement, Step, Verdict
from tracing.analyze.bisect.snapshots import FirstSeen, NotSeen, Seen, Snapshot, first_seen, looked_at

VERDICTS: dict[str, Verdict] = {"g": "good", "b": "bad", "?": "skip"}


def seen(verdicts: str) -> list[Seen]:
    return [
        Seen(Snapshot("MLIR passes", Step(at, f"pass-{at}"), "ttgir", f"ir {at}"), Judgement(VERDICTS[one]))
        for at, one in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("verdicts", "border", "between", "odd"),
    [("ggbb", (1, 2), 0, 0), ("g??b", (0, 3), 2, 0), ("bggb", (2, 3), 0, 1), ("?g?bb?", (1, 3), 1, 0)],
)
def test_the_border_between_good_and_bad_is_found(
    verdicts: str, border: tuple[int, int], between: int, odd: int
) -> None:
    found = first_seen(seen(verdicts))

    assert isinstance(found, FirstSeen)
    assert (found.good.snapshot.step.index, found.bad.snapshot.step.index) == border
    assert (len(found.between), len(found.odd)) == (between, odd)


@pytest.mark.parametrize(
    ("verdicts", "because"),
    [
        ("gbgb", "good IR turns bad 2 times"),
        ("bbb", "all 3 IRs that can be judged are bad"),
        ("g?g", "all 2 IRs that can be judged are good"),
        ("bg", "bad IR turns good, and none turns bad"),
        ("??", "the judge says of no IR"),
    ],
)
def test_where_there_is_no_one_border_it_is_said(verdicts: str, because: str) -> None:
    found = first_seen(seen(verdicts))

    assert isinstance(found, NotSeen)
    assert because in found.because


def test_equal_ir_is_judged_once() -> None:
    asked: list[str] = []

    def judged(one: Snapshot) -> Judgement:
        asked.append(one.text)
        return Judgement("good")

    row = [Snapshot("MLIR passes", Step(at, "cse"), "ttir", text) for at, text in enumerate("aabba")]

    assert len(looked_at(row, judged, lambda: None)) == 3
    assert asked == ["a", "b", "a"]
