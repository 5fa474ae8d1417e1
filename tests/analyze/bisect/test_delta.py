"""Delta debugging: the remaining subset passes the test, and no element of it can be left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.bisect.delta_debugging import minimal, most

COUNTS = st.integers(1, 24)


@given(COUNTS, st.data())
def test_exactly_the_needed_elements_remain(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1))

    assert minimal(range(count), lambda chosen: needed <= set(chosen)) == sorted(needed)


@given(COUNTS, st.randoms(use_true_random=False))
def test_no_single_item_can_be_left_out_however_the_test_answers(count: int, answers: object) -> None:
    known = {tuple(range(count)): True, (): False}

    def passes(chosen: list[int]) -> bool:
        return known.setdefault(tuple(chosen), answers.random() < 0.3)  # type: ignore[attr-defined]

    left = minimal(range(count), passes)

    assert known[tuple(left)]
    assert not any(known[tuple(one for one in left if one != out)] for out in left)


@given(COUNTS, st.randoms(use_true_random=False))
def test_no_more_is_asked_than_was_promised(count: int, answers: object) -> None:
    asked: dict[tuple[int, ...], bool] = {}

    def passes(chosen: list[int]) -> bool:
        return asked.setdefault(tuple(chosen), answers.random() < 0.3)  # type: ignore[attr-defined]

    minimal(range(count), passes)

    assert len(asked) <= most(count)


def test_two_needed_elements_of_a_thousand_take_dozens_of_tests() -> None:
    asked = set()

    def passes(chosen: list[int]) -> bool:
        asked.add(tuple(chosen))
        return {100, 800} <= set(chosen)

    assert minimal(range(1000), passes) == [100, 800]
    assert len(asked) < 100
