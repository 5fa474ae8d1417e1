"""Why a kernel read other bits: each cause, from memory, operators and accesses that are built by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from planted_runs import Operators, digits, saved
from records import META, arg, launch

from tracing.analyze.compare.causes import CauseAnswer
from tracing.analyze.compare.comparison import Comparison
from tracing.analyze.compare.divergence import (
    Cause,
    Divergence,
    Host,
    InputDiffers,
    OperatorCause,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    kind_of,
)
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import (
    Access,
    Digest,
    KernelArg,
    KernelLaunch,
    OutOfBounds,
    Record,
    Reread,
    Result,
    Storage,
    TensorMeta,
    TensorValue,
)

X, Y = 7, 8  # storages
Side = tuple[Sequence[KernelLaunch], Sequence[Record]]
Compare = Callable[[Side, Side], tuple[list[Divergence], Comparison]]
Why = Callable[[Side, Side], Cause]


@pytest.fixture
def compared(tmp_path: Path) -> Compare:
    def compare(a: Side, b: Side) -> tuple[list[Divergence], Comparison]:
        comparison = Comparison(saved(tmp_path / "a", *a), saved(tmp_path / "b", *b))
        return list(comparison), comparison

    return compare


@pytest.fixture
def why(compared: Compare) -> Why:
    """The cause of the one difference of two runs, an input."""

    def cause(a: Side, b: Side) -> Cause:
        (found,), _ = compared(a, b)
        assert isinstance(found, InputDiffers)
        return found.cause

    return cause


def writer(index: int, value: str = "y", storage: int = X, name: str = "writer") -> KernelLaunch:
    return launch(index, arg("out_ptr", "out", "old", value, storage=storage), name=name)


def reader(index: int, value: str, storage: int = X, result: str = "") -> KernelLaunch:
    into = arg("out_ptr", "out", "old", result or f"of {value}", storage=99)
    return launch(index, arg("in_ptr", "in", value, storage=storage), into, name="reader")


def operators(*calls: tuple[str, Sequence[int], Sequence[int]], after: int = 1) -> Operators:
    """Operators after so many launches: name, storages that it reads, and that it writes."""
    found = Operators()
    for name, reads, writes in calls:
        found.call(after, name, reads, writes)
    return found


# ---- operators


def test_an_operator_that_one_run_alone_calls_did_it(why: Why) -> None:
    added = Operators().call(1, "aten::add_", [X], [X], arguments="1")

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z")], added.records))

    assert cause == OperatorCause(("", "aten::add_"), ("", "1"), "b", proven=True)


def test_operators_that_differ_are_both_named(why: Why) -> None:
    a, b = (operators((name, [X], [X])).records for name in ("aten::mul_", "aten::add_"))

    cause = why(([writer(0), reader(1, "y")], a), ([writer(0), reader(1, "z")], b))

    assert cause == OperatorCause(("aten::mul_", "aten::add_"), ("", ""), "ab", proven=True)


def test_an_operator_that_both_runs_call_on_other_arguments_did_it(why: Why) -> None:
    a, b = (Operators().call(1, "aten::add_", [X], [X], arguments=text).records for text in "12")

    cause = why(([writer(0), reader(1, "y")], a), ([writer(0), reader(1, "z")], b))

    assert cause == OperatorCause(("aten::add_",) * 2, ("1", "2"), "ab", proven=True)


def test_an_operator_that_both_runs_call_on_equal_inputs_did_it_or_passed_it_on(why: Why) -> None:
    mm = operators(("aten::mm", [Y], [X])).records

    cause = why(*(([writer(0, "y", Y), reader(1, value)], mm) for value in "yz"))

    assert cause == OperatorCause(("aten::mm",) * 2, ("", ""), "ab", proven=False)


def test_digests_prove_that_an_operator_is_not_deterministic(why: Why) -> None:
    sides = []
    for value in "yz":
        mm = Operators().call(1, "aten::mm", [Y], [X], bits=("y", value))
        sides.append(([writer(0, "y", Y), reader(1, value)], mm.records))

    cause = why(*sides)

    assert cause == OperatorCause(("aten::mm",) * 2, ("", ""), "ab", proven=True, not_deterministic=True)


def test_what_an_operator_of_one_run_wrote_is_followed_through_those_that_passed_it_on(why: Why) -> None:
    passing = ("aten::mm", [Y], [X]), ("aten::relu_", [X], [X])
    a, b = operators(*passing), operators(("aten::add_", [Y], [Y]), *passing)

    cause = why(
        ([writer(0, "y", Y), reader(1, "y")], a.records), ([writer(0, "y", Y), reader(1, "z")], b.records)
    )

    assert cause == OperatorCause(
        ("", "aten::add_"), ("", ""), "b", proven=True, through=("aten::relu_", "aten::mm")
    )


def test_the_result_of_a_kernel_that_differs_follows_from_it_through_an_operator(compared: Compare) -> None:
    mm = operators(("aten::mm", [Y], [X])).records

    found, comparison = compared(*(([writer(0, value, Y), reader(1, value)], mm) for value in "yz"))

    assert [kind_of(one) for one in found] == ["output"]
    assert comparison.notes.consequences == 1


def test_an_operator_whose_operands_changed_places_is_the_same(compared: Compare) -> None:
    a, b = (operators(("aten::add", pair, [X])).records for pair in ([Y, 6], [6, Y]))

    found, comparison = compared(
        ([writer(0, "y", Y), reader(1, "y")], a), ([writer(0, "z", Y), reader(1, "z")], b)
    )

    assert [kind_of(one) for one in found] == ["output"]
    assert comparison.notes.consequences == 1


def test_an_operator_that_comes_after_the_reader_is_not_what_it_read(why: Why) -> None:
    late = operators(("aten::add_", [X], [X]), after=2).records

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z")], late))

    assert cause == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_operators_that_write_constants_make_nothing_differ(why: Why) -> None:
    zeros = operators(("aten::zeros", [], [X]), after=0).records

    assert why(([reader(0, "y")], zeros), ([reader(0, "z")], zeros)) == Host("", None)


# ---- the host


@pytest.mark.parametrize(("read", "runs"), [("yz", "b"), ("zy", "a"), ("vz", "ab")])
def test_memory_that_is_read_otherwise_than_it_was_left_was_changed_by_the_host(
    read: str, runs: str, why: Why
) -> None:
    cause = why(*(([writer(0), reader(1, value)], []) for value in read))

    assert cause == Host(runs, Writer(0, 0, "writer", "out_ptr"))  # type: ignore[arg-type]


def test_memory_that_nobody_was_seen_to_write_may_come_from_the_host(why: Why) -> None:
    assert why(([reader(0, "y")], []), ([reader(0, "z")], [])) == Host("", None, proven=False)


def test_what_the_host_may_have_changed_is_followed_through_an_operator(why: Why) -> None:
    mm = operators(("aten::mm", [Y], [X]), after=0).records

    cause = why(([reader(0, "y")], mm), ([reader(0, "z")], mm))

    assert cause == Host("", None, proven=False, through=("aten::mm",))


def part(name: str, role: str, start: int, before: str, after: str | None = None) -> KernelArg:
    """Two elements of the storage X, from one on."""
    meta = TensorMeta((2,), (1,), "float32", "cpu", start)
    return KernelArg(name, role, meta, X, None, Digest(before), Digest(after or before))  # type: ignore[arg-type]


def test_slices_of_one_storage_have_their_own_writers(why: Why) -> None:
    def run(value: str) -> Side:
        first = launch(0, part("out_ptr", "out", 0, "old", "y"), name="first")
        second = launch(1, part("out_ptr", "out", 2, "old", "y"), name="second")
        return [first, second, launch(2, part("in_ptr", "in", 0, value), name="reader")], []

    assert why(run("y"), run("z")) == Host("b", Writer(0, 0, "first", "out_ptr"))


def test_a_slice_that_an_operator_wrote_does_not_accuse_it_of_its_neighbour(why: Why) -> None:
    half = TensorMeta((2,), (1,), "float32", "cpu", 2)
    filled = Operators().call(1, "aten::mul_", [], [X], meta=half).records

    def run(value: str) -> Side:
        first = launch(0, part("out_ptr", "out", 0, "old", "y"), name="first")
        return [first, launch(1, part("in_ptr", "in", 0, value), name="reader")], filled

    assert why(run("y"), run("z")) == Host("b", Writer(0, 0, "first", "out_ptr"))


def test_another_view_of_what_was_left_is_known_by_reading_the_writers_view_once_more(why: Why) -> None:
    def run(left: str, value: str) -> Side:
        read = launch(1, part("in_ptr", "in", 0, value), name="reader")
        return [writer(0), read], [Reread(1, 0, 0, 0, digits(left))]

    assert why(run("y", "y"), run("poked", "z")) == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_what_was_left_undigested_cannot_be_decided(why: Why) -> None:
    (written,) = writer(0).args
    unread = msgspec.structs.replace(writer(0), args=(msgspec.structs.replace(written, after=None),))

    cause = why(([unread, reader(1, "y")], []), ([unread, reader(1, "z")], []))

    assert cause == UnknownCause("what launch #0 writer left was not digested")


# ---- the program, and streams


def test_a_program_that_passes_another_tensor_is_said_to(why: Why) -> None:
    def run(value: str, storage: int) -> Side:
        return [writer(0), writer(1, "w", Y, "other"), reader(2, value, storage)], []

    cause = why(run("y", X), run("w", Y))

    assert cause == OtherTensor("launch #0 writer", "launch #1 other")


def test_a_result_that_was_left_on_another_stream_may_come_too_late(why: Why) -> None:
    def run(value: str) -> Side:
        return [msgspec.structs.replace(writer(0), stream=1), reader(1, value)], []

    assert why(run("y"), run("early")) == StreamCause(Writer(0, 0, "writer", "out_ptr"))


# ---- memory that nobody wrote, and out of bounds

EMPTY = operators(("aten::empty", [], [X]), after=0).records
EMPTY[0] = msgspec.structs.replace(EMPTY[0], allocates=True)


def test_memory_that_was_allocated_and_not_written_is_uninitialised(why: Why) -> None:
    assert why(([reader(0, "one")], EMPTY), ([reader(0, "two")], EMPTY)) == Uninitialised(None)


def test_memory_given_out_again_no_longer_holds_what_was_written_there(why: Why) -> None:
    again = operators(("aten::empty", [], [X]))
    again.records[0] = EMPTY[0]

    def run(value: str) -> Side:
        return [writer(0), reader(1, value)], again.records

    assert why(run("one"), run("two")) == Uninitialised(None)


def test_garbage_that_changes_no_result_is_no_difference(compared: Compare) -> None:
    found, comparison = compared(*(([reader(0, value, result="y")], EMPTY) for value in ("one", "two")))

    assert (found, comparison.notes.uninitialised) == ([], 0)


def test_garbage_that_an_operator_passed_on_leads_back_to_who_left_it(why: Why) -> None:
    records = [*EMPTY, *operators(("aten::mm", [X], [Y]), after=0).records]
    records[2:] = [msgspec.structs.replace(one, id=1) for one in records[2:3]] + [
        msgspec.structs.replace(one, index=1, signature=1) for one in records[3:]
    ]

    cause = why(*(([reader(0, value, Y)], records) for value in ("one", "two")))

    assert cause == Uninitialised(None, through=("aten::mm",))


def test_the_interpreter_names_the_elements_that_nobody_wrote(why: Why) -> None:
    seen = Access(0, {0: digits("seen")}, {1: digits("left")}, uninitialised={0: (2, 2)})

    def run(value: str) -> Side:
        other = msgspec.structs.replace(seen, read={0: digits(value)}, written={1: digits(value)})
        return [reader(0, value)], [*EMPTY, other]

    assert why(run("one"), run("two")) == Uninitialised(None, elements=(2, 2))


def test_the_operator_that_wrote_in_one_run_is_the_cause_if_only_the_other_run_read_uninitialised_elements(
    why: Why,
) -> None:
    added = Operators().call(1, "aten::add_", [X], [X], arguments="1")
    seen = Access(1, {0: digits("y")}, {1: digits("of y")}, uninitialised={0: (2, 2)})
    other = Access(1, {0: digits("z")}, {1: digits("of z")})

    cause = why(([writer(0), reader(1, "y")], [seen]), ([writer(0), reader(1, "z")], [*added.records, other]))

    assert cause == OperatorCause(("", "aten::add_"), ("", "1"), "b", proven=True)


def test_elements_that_were_uninitialised_in_one_run_are_named_if_no_other_write_was_seen(why: Why) -> None:
    accesses = [Access(0, {0: digits(bits)}, {1: digits(bits)}) for bits in ("one", "two")]
    accesses[1] = msgspec.structs.replace(accesses[1], uninitialised={0: (2, 2)})

    cause = why(
        *(([reader(0, bits)], [*EMPTY, seen]) for bits, seen in zip(("one", "two"), accesses, strict=True))
    )

    assert cause == Uninitialised(None, elements=(2, 2))


def test_what_a_launch_read_equally_is_no_difference_whatever_lay_next_to_it(compared: Compare) -> None:
    seen = Access(0, {0: digits("seen")}, {1: digits("left")})

    found, _ = compared(*(([reader(0, value)], [seen]) for value in ("one", "two")))

    assert found == []


ADDRESSES = [Storage(X, 4096, 16), Storage(Y, 4112, 16)]


def overrun(launch: int) -> OutOfBounds:
    """`writer` stores four elements past the end of X, into Y."""
    return OutOfBounds(launch, "out_ptr", "store", 4, (0, 0, 0), 4112, 4128, 4, False, "k.py:3")


def test_a_launch_that_overran_its_argument_in_one_run_is_named_by_those_who_read_it(why: Why) -> None:
    def run(value: str, *outside: OutOfBounds) -> Side:
        launches = [writer(0, "neighbour", Y, "neighbour"), writer(1), reader(2, value, Y)]
        return launches, [*ADDRESSES, *outside]

    cause = why(run("neighbour"), run("hit", overrun(1)))

    assert cause == Overrun(Writer(None, 1, "writer", "out_ptr"), "b")


def test_a_launch_that_overran_its_argument_in_both_runs_is_named_too(why: Why) -> None:
    def run(value: str) -> Side:
        launches = [writer(0, "neighbour", Y, "neighbour"), writer(1), reader(2, value, Y)]
        return launches, [*ADDRESSES, overrun(1)]

    assert why(run("one"), run("two")) == Overrun(Writer(1, 1, "writer", "out_ptr"), "ab")


# ---- results of the case


def result(bits: str, storage: int, **value: object) -> Result:
    """An output that lies in a storage of ADDRESSES."""
    address = {X: 4096, Y: 4112}[storage]
    tensor = TensorValue(META, Digest(digits(bits)), address)
    return Result("output", msgspec.structs.replace(tensor, **value))


def of_result(folder: Path, a: Side, b: Side) -> CauseAnswer:
    verdict = ComparisonVerdict.of(saved(folder / "a", *a), saved(folder / "b", *b), 64)
    assert list(verdict) == []
    (found,) = verdict.results
    return verdict.comparison.cause_of(found)


def test_a_result_that_the_host_changed_after_the_last_launch_is_the_hosts(tmp_path: Path) -> None:
    sides = (([writer(0)], [*ADDRESSES, result(bits, X)]) for bits in "yz")

    assert of_result(tmp_path, *sides) == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_a_result_that_an_operator_of_one_run_wrote_last_is_the_operators(tmp_path: Path) -> None:
    added = operators(("aten::add_", [X], [X])).records
    a = [writer(0)], [*ADDRESSES, result("y", X)]
    b = [writer(0)], [*ADDRESSES, *added, result("z", X)]

    assert of_result(tmp_path, a, b) == OperatorCause(("", "aten::add_"), ("", ""), "b", proven=True)


def test_a_result_with_elements_that_nobody_wrote_is_uninitialised(tmp_path: Path) -> None:
    sides = (([], [*ADDRESSES, *EMPTY, result(bits, X, uninitialised=(1, 3))]) for bits in "yz")

    assert of_result(tmp_path, *sides) == Uninitialised(None, (1, 3))


def test_of_a_result_whose_address_is_not_known_nothing_is_said(tmp_path: Path) -> None:
    sides = (([writer(0)], [*ADDRESSES, result(bits, X, address=0)]) for bits in "yz")

    assert of_result(tmp_path, *sides) is None
