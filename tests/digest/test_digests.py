"""Digests of many launches are read back from their columnar file."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.digest.columns import Columns, Digested, packed, rows
from tracing.model import Digest, DigestBatch, DigestLine, LaunchLine

COUNTS = st.integers(0, 2**40)
DIGESTS = st.builds(
    Digest,
    st.integers(0, 2**128 - 1).map("{:032x}".format),
    st.integers(0, 8).flatmap(
        lambda ranges: st.text("0123456789abcdef", min_size=3 * ranges, max_size=3 * ranges)
    ),
    COUNTS,
    COUNTS,
    COUNTS,
    st.none() | st.floats(0, 1e308),
)
SIDE = st.dictionaries(st.integers(0, 99), DIGESTS, max_size=4)
LINES = st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=9).map(
    lambda sides: [DigestLine(3 * i, before, after) for i, (before, after) in enumerate(sides)]
)


def together(lines: list[DigestLine]) -> list[Digested]:
    columns = Columns.of([d for line in lines for d in (*line.before.values(), *line.after.values())])
    first = 0
    launches = []
    for line in lines:
        launches.append(Digested(line.launch, columns, first, list(line.before), list(line.after)))
        first = launches[-1].stop
    return launches


def read_back(launches: list[Digested]) -> list[DigestLine]:
    decoder = msgspec.json.Decoder(DigestBatch)
    batches = [decoder.decode(msgspec.json.encode(batch)) for batch in packed(launches)]
    lines = [LaunchLine(launch.launch, 0, 0, ()) for launch in launches]
    return [digests for row in rows(lines, batches) if (digests := row.digests())]


@given(LINES)
def test_digests_are_read_back_as_written(lines: list[DigestLine]) -> None:
    assert read_back(together(lines)) == lines


@given(LINES)
def test_consecutive_launches_are_one_line(lines: list[DigestLine]) -> None:
    assert len(list(packed(together(lines)))) == 1


@given(LINES, st.data())
def test_launches_may_be_read_in_any_order(lines: list[DigestLine], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True))
    launches = together(lines)

    assert read_back([launches[i] for i in chosen]) == [lines[i] for i in chosen]


def test_columns_that_do_not_fit_each_other_are_refused() -> None:
    (batch,) = packed(together([DigestLine(0, {0: Digest("a" * 32)}, {})]))

    with pytest.raises(ValueError, match="1 digests are named, 0 are there"):
        list(rows([LaunchLine(0, 0, 0, ())], [msgspec.structs.replace(batch, l1=[])]))
