"""Diffs of lines equal those of difflib for short texts, and take bounded time for any text."""

from __future__ import annotations

import difflib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze import line_matching
from tracing.analyze.line_matching import LineMatcher, unified_diff
from tracing.analyze.passes.renaming import renamed

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=30)
LONG = 40_000  # lines
TEXTS: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {  # of a line by its number
    "every second line is new": (lambda n: f"x.a{n}", lambda n: f"x.b{n}" if n % 2 else f"x.a{n // 2}"),
    "the other order": (lambda n: f"x.a{n}", lambda n: f"x.a{LONG - n}"),
    "a hundred kinds": (lambda n: f"x.a{n * 7919 % 101}", lambda n: f"x.a{n * n * 31 % 101}"),
    "a thousand kinds": (lambda n: f"x.a{n * 7919 % 1009}", lambda n: f"x.a{n * n * 31 % 1009}"),
}


@given(LINES, LINES)
def test_a_diff_of_short_texts_is_that_of_difflib(a: list[str], b: list[str]) -> None:
    assert list(unified_diff(a, b, ("a", "b"))) == list(difflib.unified_diff(a, b, "a", "b", lineterm=""))


@given(LINES, LINES)
def test_the_diff_of_a_text_that_is_cut_is_a_diff_all_the_same(a: list[str], b: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_matching, "_SHORT", 4)
        steps = LineMatcher(a, b).get_opcodes()

    assert [line for _, i, i_stop, _, _ in steps for line in a[i:i_stop]] == a
    assert [line for _, _, _, j, j_stop in steps for line in b[j:j_stop]] == b
    assert all((a[i:i_stop] == b[j:j_stop]) == (kind == "equal") for kind, i, i_stop, j, j_stop in steps)


def test_lines_that_both_long_texts_have_once_are_matched() -> None:
    a = [f"line {n}" for n in range(5000)]
    b = [*a[:10], "new", *a[10:2000], *a[2001:4000], "other", *a[4001:]]

    removed = [line for line in unified_diff(a, b, ("a", "b"), 0) if line[:1] == "-"][1:]
    added = [line for line in unified_diff(a, b, ("a", "b"), 0) if line[:1] == "+"][1:]

    assert (removed, added) == (["-line 2000", "-line 4000"], ["+new", "+other"])


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_that_take_difflib_very_long_are_aligned(kind: str) -> None:
    a, b = ("\n".join(map(line, range(LONG))) for line in TEXTS[kind])

    assert renamed(a, b).splitlines() == b.splitlines()
