"""Sizes are read as people write them."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from tracing.cli.options.size import size, size_text


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1GB", 10**9),
        ("1GiB", 2**30),
        ("512 mib", 2**29),
        ("2.5k", 2500),
        ("7", 7),
        ("3B", 3),
        ("1T", 10**12),
    ],
)
def test_a_size_is_a_number_with_a_unit(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "GB", "1XB", "-1", "1 G B", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no size"):
        size(text)


@given(st.integers(0, 2**50))
def test_what_is_printed_is_read(count: int) -> None:
    assert size(size_text(count)) == count
