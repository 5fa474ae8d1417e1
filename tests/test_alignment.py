"""How two sequences of launches come back into step, and where in a tensor two digests differ."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.alignment import aligned, way_back
from tracing.analyze.elements import blame, differing_elements
from tracing.digests import Row
from tracing.model import Digest, LaunchLine, TensorMeta
from tracing.record.digest import digest


@pytest.mark.parametrize(
    ("a", "b", "left_out"),
    [
        ("abcdef", "xabcdef", (0, 1)),
        ("xyabcdef", "abcdef", (2, 0)),
        ("xabcdef", "yabcdef", (1, 1)),
        ("aaab", "aaaab", (0, 1)),
        ("abc", "xyz", (3, 3)),
        ("abc", "", (3, 0)),
    ],
)
def test_the_shortest_way_back_leaves_out_the_fewest(a: str, b: str, left_out: tuple[int, int]) -> None:
    assert way_back(a, b) == left_out


def rows(names: str) -> list[Row]:
    return [Row(LaunchLine(index, ord(name), 0, ())) for index, name in enumerate(names)]


@given(st.text("abc", max_size=40), st.text("abc", max_size=40), st.integers(8, 16))
def test_every_launch_of_both_runs_comes_out_once_and_in_order(a: str, b: str, window: int) -> None:
    pairs = list(aligned(iter(rows(a)), iter(rows(b)), chr, chr, {}, window))

    assert "".join(chr(one.line.signature) for one, _ in pairs if one) == a
    assert "".join(chr(other.line.signature) for _, other in pairs if other) == b


@given(st.permutations("abcdefghijklmnopqrst"), st.integers(0, 19))
def test_one_launch_left_out_costs_one_launch(names: list[str], where: int) -> None:
    a, b = "".join(names), "".join(names[:where] + names[where + 1 :])
    pairs = list(aligned(iter(rows(a)), iter(rows(b)), chr, chr))

    assert [chr(one.line.signature) for one, other in pairs if one and not other] == [a[where]]
    assert all(one for one, _ in pairs)


def test_of_two_ways_back_the_one_that_agrees_for_longer_is_taken() -> None:
    assert way_back("bhbhbhdbce", "hbhbhdbce") == (1, 0)


@pytest.mark.parametrize("changed", [0, 5000, 99_999])
def test_the_range_of_elements_that_differs_holds_the_element_that_was_changed(changed: int) -> None:
    a = torch.zeros(100_000)
    b = a.clone()
    b[changed] = 1

    ranges = differing_elements(TensorMeta((100_000,), (1,), "float32", "cpu"), digest(a), digest(b))

    assert len(ranges) == 1
    assert ranges[0][0] <= changed < ranges[0][1] <= 100_000


ALL = TensorMeta((16384,), (1,), "float32", "cpu")
HALF = 8192  # elements of 4 bytes in 4 of 8 ranges


def pair(a: torch.Tensor, b: torch.Tensor) -> tuple[Digest, Digest]:
    return digest(a), digest(b)


def garbage(seed: int) -> torch.Tensor:
    return torch.rand(2 * HALF, generator=torch.Generator().manual_seed(seed))


def test_memory_that_was_equal_before_and_differs_now_was_written_by_the_launch() -> None:
    before = garbage(0), torch.cat([garbage(0)[:HALF], garbage(1)[HALF:]])
    after = [torch.cat([torch.full((HALF,), float(run)), one[HALF:]]) for run, one in enumerate(before)]

    assert blame(pair(*before), pair(*after)) == "launch"
    assert differing_elements(ALL, *pair(*after), pair(*before)) == [(0, HALF)]


def test_memory_that_differs_as_it_did_before_was_left_untouched() -> None:
    before = garbage(0), garbage(1)
    after = [torch.cat([torch.zeros(HALF), one[HALF:]]) for one in before]

    assert blame(pair(*before), pair(*after)) == "untouched"


def test_of_memory_that_differed_and_was_changed_nobody_knows_how_much_was_written() -> None:
    before = garbage(0), garbage(1)
    after = [one.clone() for one in before]
    for one in after:
        one[::2] = 0

    assert blame(pair(*before), pair(*after)) == "open"


def test_digests_without_ranges_put_no_blame_on_a_launch() -> None:
    assert blame((Digest("a"), Digest("b")), (Digest("c"), Digest("d"))) == "open"
