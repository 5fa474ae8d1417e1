"""The compiled form of decoding digests gives what the Python form gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.digest.columns import DigestedLaunches
from tracing.digest.gpu import Rows, Sides, digest_objects, digested
from tracing.digest.kernel import FIELDS
from tracing.environment.compiled_parts import SWITCH
from tracing.native.extension import NotCompiledError, extension

_NUMBERS = st.sampled_from([0.0, 5e-324, 1e-17, 0.1234565, 1.0, 999999.5, 1e300, 1e308, float("inf")])
_COUNTS = st.sampled_from([0, 0, 0, 1, 2**40])
_WORDS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    facts = st.tuples(st.integers(0, 2**40), st.integers(0, 8), st.integers(0, 1))
    before, after = (draw(st.lists(facts, max_size=3)) for _ in range(2))
    tables = [np.array(side, np.int64).reshape(-1, 3) for side in (before, after)]
    return Sides(range(len(before)), range(len(after)), (tables[0], tables[1]))


@st.composite
def rows_and_slots(draw: st.DrawFn) -> tuple[Rows, npt.NDArray[np.int64]]:
    rows, taken = Rows(), draw(st.integers(0, 3))
    known = draw(st.lists(sides(), min_size=1, max_size=3))
    for launch in range(draw(st.integers(1, 5))):
        rows.add(launch, taken, one := draw(st.sampled_from(known)))
        taken += len(one.before) + len(one.after) + draw(st.integers(0, 2))
    slots = np.zeros((taken + 1, FIELDS), np.int64)
    for slot in slots:
        slot[0], slot[1] = draw(_WORDS), np.float64(draw(_NUMBERS)).view(np.int64)
        slot[2:5] = [draw(_COUNTS) for _ in range(3)]
        slot[5:] = [draw(_WORDS) for _ in range(FIELDS - 5)]
    return rows, slots


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    try:
        extension("launches")
    except NotCompiledError as error:
        pytest.skip(f"not compiled: {error}")


@given(rows_and_slots())
def test_columns_and_objects_are_those_of_the_python_form(
    both: tuple[Rows, npt.NDArray[np.int64]],
) -> None:
    rows, slots = both
    compiled = digested(rows, slots, rows.launches)
    objects = digest_objects(compiled.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "0")
        python = digested(rows, slots, rows.launches)
        assert digest_objects(python.columns) == objects

    assert _facts(compiled) == _facts(python)


@pytest.mark.parametrize(
    ("first", "shape"), [(1, (1, FIELDS)), (-1, (1, FIELDS)), (0, (1, 3)), (0, (FIELDS,))]
)
def test_slots_that_do_not_fit_are_an_error(first: int, shape: tuple[int, ...]) -> None:
    rows = Rows()
    facts = np.array([[4, 1, 1]]), np.empty((0, 3), np.int64)
    rows.add(0, first, Sides([0], [], facts))

    with pytest.raises(RuntimeError, match=r"outside of the batch|another shape"):
        digested(rows, np.zeros(shape, np.int64), [0])


def _facts(launches: DigestedLaunches) -> tuple[object, ...]:
    columns = launches.columns
    norms = [None if norm is None or np.isnan(norm) else norm for norm in columns.l1]
    return (
        columns.bits,
        columns.tiles,
        list(columns.ranges),
        norms,
        dict(columns.special),
        list(launches.firsts),
    )
