"""The cause of a different input, from hand-built memory, operators and accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from handmade.records import META, arg, launch
from handmade.runs import Operators, digits, saved, saved_job

from tracing.analyze.compare.cause_kinds import (
    Cause,
    Host,
    MoreCalls,
    OperatorCause,
    OtherInput,
    OtherOrder,
    OtherPoint,
    OtherResults,
    OtherTarget,
    OtherTensor,
    Overrun,
    StreamCause,
    Uninitialised,
    UnknownCause,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.compare.causes.cause_answer import CauseAnswer
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    OneSided,
    OutputDiffers,
    kind_of,
)
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import (
    Access,
    CallSite,
    Digest,
    KernelArg,
    KernelLaunch,
    OperatorDigests,
    OperatorSignature,
    OutOfBounds,
    Record,
    Reread,
    Result,
    Start,
    Storage,
    TensorMeta,
    TensorValue,
)
from tracing.report.compare.cause import cause_text
from tracing.store import Run

X, Y = 7, 8  # storages
Call = tuple[str, Sequence[int], Sequence[int]]
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
    """The cause of the only difference between two runs: an input."""

    def cause(a: Side, b: Side) -> Cause:
        (divergence,), _ = compared(a, b)
        assert isinstance(divergence, InputDiffers)
        return divergence.cause

    return cause


def writer(index: int, value: str = "y", storage: int = X, name: str = "writer") -> KernelLaunch:
    return launch(index, arg("out_ptr", "out", "old", value, storage=storage), name=name)


def reader(index: int, value: str, storage: int = X, result: str = "") -> KernelLaunch:
    into = arg("out_ptr", "out", "old", result or f"of {value}", storage=99)
    return launch(index, arg("in_ptr", "in", value, storage=storage), into, name="reader")


def operators(*calls: Call, after: int = 1) -> Operators:
    """Operators, each after a number of launches: name, storages read, storages written."""
    operators = Operators()
    for name, reads, writes in calls:
        operators.call(after, name, reads, writes)
    return operators


# ---- operators


def test_an_operator_that_only_one_run_calls_is_the_cause(why: Why) -> None:
    added = Operators().call(1, "aten::add_", [X], [X], arguments="1")

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z")], added.records))

    assert cause == OperatorCause(("", "aten::add_"), ("", "1"), "b", proven=True)


def test_two_different_operators_are_both_named(why: Why) -> None:
    a, b = (operators((name, [X], [X])).records for name in ("aten::mul_", "aten::add_"))

    cause = why(([writer(0), reader(1, "y")], a), ([writer(0), reader(1, "z")], b))

    assert cause == OperatorCause(("aten::mul_", "aten::add_"), ("", ""), "ab", proven=True)


def test_an_operator_that_both_runs_call_with_different_arguments_is_the_cause(why: Why) -> None:
    a, b = (Operators().call(1, "aten::add_", [X], [X], arguments=text).records for text in "12")

    cause = why(([writer(0), reader(1, "y")], a), ([writer(0), reader(1, "z")], b))

    assert cause == OperatorCause(("aten::add_",) * 2, ("1", "2"), "ab", proven=True)


def test_an_operator_that_both_runs_call_on_equal_inputs_caused_or_propagated_the_difference(
    why: Why,
) -> None:
    mm = operators(("aten::mm", [Y], [X])).records

    cause = why(*(([writer(0, "y", Y), reader(1, value)], mm) for value in "yz"))

    assert cause == OperatorCause(("aten::mm",) * 2, ("", ""), "ab", proven=False)


@pytest.mark.parametrize("random", [False, True])
def test_digests_prove_that_an_operator_is_not_deterministic_or_drew_other_numbers(
    why: Why, random: bool
) -> None:
    sides = []
    for value in "yz":
        called = Operators().call(1, "aten::mm", [Y], [X], bits=("y", value), random=random)
        sides.append(([writer(0, "y", Y), reader(1, value)], called.records))

    cause = why(*sides)

    assert isinstance(cause, OperatorCause) and cause.proven
    assert cause.how == OtherResults("random" if random else "not deterministic", (0, 0))


def job(folder: Path, given: Sequence[str], received: str, **info: object) -> Run:
    """A job whose ranks give words to a collective, and read what they receive."""
    ranks = []
    for word in given:
        called = Operators().call(1, "c10d::allreduce_", [X], [X], bits=(word, received))
        ranks.append(([writer(0, word), reader(1, received)], called.records))
    return saved_job(folder, *ranks, **info)


def test_a_collective_with_equal_inputs_here_follows_from_another_rank(tmp_path: Path) -> None:
    comparison = Comparison(job(tmp_path / "a", "yy", "s"), job(tmp_path / "b", "yz", "t"))

    (divergence,) = comparison

    assert isinstance(divergence, OutputDiffers) and divergence.pair.rank == 1
    assert comparison.notes.consequences == 2


def test_a_collective_with_equal_inputs_on_all_ranks_is_not_deterministic(tmp_path: Path) -> None:
    divergences = list(Comparison(*(job(tmp_path / word, "yy", word) for word in "ab")))

    assert [one.pair.rank for one in divergences] == [0]
    (cause,) = [one.cause for one in divergences if isinstance(one, InputDiffers)]
    assert isinstance(cause, OperatorCause) and cause.not_deterministic and cause.proven


@pytest.mark.parametrize("size", [1, 2], ids=["runs of their own", "no records"])
def test_what_ranks_outside_of_the_runs_gave_a_collective_is_not_known(tmp_path: Path, size: int) -> None:
    (divergence,) = Comparison(*(job(tmp_path / word, "y", word, world_size=size) for word in "ab"))

    assert isinstance(divergence, InputDiffers) and isinstance(divergence.cause, OperatorCause)
    cause = divergence.cause
    assert isinstance(cause.how, OtherResults)
    assert (cause.how.why, cause.proven) == ("received", False)


@pytest.mark.parametrize("digested", [True, False])
def test_an_operator_that_reads_its_inputs_in_another_order_is_deterministic(
    why: Why, digested: bool
) -> None:
    sides = []
    for inputs, words, value in (((Y, 6), ("p", "q"), "y"), ((6, Y), ("q", "p"), "z")):
        called = Operators()
        called.call(1, "aten::mul", [], [Y], arguments="2", bits=("", "p") if digested else None)
        called.call(1, "aten::mul", [], [6], arguments="3", bits=("", "q") if digested else None)
        called.call(1, "aten::sub", inputs, [X], bits=(words, value) if digested else None)
        sides.append(([writer(0), reader(1, value)], called.records))

    cause = why(*sides)

    assert cause == OperatorCause(("aten::sub",) * 2, ("", ""), "ab", proven=True, how=OtherOrder())


@pytest.mark.parametrize(("name", "proven"), [("aten::add.Tensor", False), ("aten::sub.Tensor", True)])
def test_exchanged_operands_of_a_sum_are_not_the_cause(name: str, proven: bool, why: Why) -> None:
    sides = []
    for inputs, value in (((Y, 6), "y"), ((6, Y), "z")):
        called = Operators().call(1, "aten::mul", [], [Y], arguments="2").call(1, "aten::sin", [], [6])
        sides.append(([writer(0), reader(1, value)], called.call(1, name, inputs, [X]).records))

    cause = why(*sides)

    assert isinstance(cause, OperatorCause)
    assert (cause.how == OtherOrder(), cause.proven) == (proven, proven)


def test_an_operator_with_an_input_without_digest_is_not_called_nondeterministic(why: Why) -> None:
    sides = []
    for value in "yz":
        called = Operators().call(1, "aten::copy_", [Y], [X], bits=([""], value)).records
        without = [
            msgspec.structs.replace(one, before=(Digest(""),)) if isinstance(one, OperatorDigests) else one
            for one in called
        ]
        sides.append(([writer(0, "y", Y), reader(1, value)], without))

    cause = why(*sides)

    assert cause == OperatorCause(("aten::copy_",) * 2, ("", ""), "ab", proven=False)


def test_another_part_of_the_result_of_one_call_is_another_tensor(why: Why) -> None:
    sides = []
    for offset, value in ((0, "y"), (1, "z")):
        part = msgspec.structs.replace(META, shape=(2,), offset=offset)
        called = Operators().call(1, "aten::arange", [], [Y]).call(1, "aten::mul", [Y], [X], arguments="2")
        records = [
            msgspec.structs.replace(one, reads=(part,))
            if isinstance(one, OperatorSignature) and one.reads
            else one
            for one in called.records
        ]
        sides.append(([writer(0), reader(1, value)], records))

    cause = why(*sides)

    assert isinstance(cause, OperatorCause)
    assert cause.how == OtherInput(
        "call 1 of aten::arange, from byte 0 on", "call 1 of aten::arange, from byte 4 on"
    )


def test_an_operator_whose_results_are_equal_is_not_the_cause(why: Why) -> None:
    # of one product: the data, drawn after the weight was updated, and the weight
    sides = []
    for rate, value in (("0.1", "y"), ("0.2", "z")):
        called = Operators().call(1, "aten::add_", [Y], [Y], arguments=rate, bits=("w", value))
        called.call(1, "aten::rand", [], [77], random=True, bits=("", "data"))
        called.call(1, "aten::mm", [77, Y], [X], bits=(value, value))
        sides.append(([writer(0, "y", Y), reader(1, value)], called.records))

    cause = why(*sides)

    assert cause == OperatorCause(
        ("aten::add_",) * 2, ("0.1", "0.2"), "ab", proven=True, through=("aten::mm",)
    )


def test_a_write_by_an_operator_of_one_run_is_followed_through_operators_that_propagate_it(why: Why) -> None:
    passing = ("aten::mm", [Y], [X]), ("aten::relu_", [X], [X])
    a, b = operators(*passing), operators(("aten::add_", [Y], [Y]), *passing)

    cause = why(
        ([writer(0, "y", Y), reader(1, "y")], a.records), ([writer(0, "y", Y), reader(1, "z")], b.records)
    )

    assert cause == OperatorCause(
        ("", "aten::add_"), ("", ""), "b", proven=True, through=("aten::relu_", "aten::mm")
    )


@pytest.mark.parametrize("before", [60, 64, 70, 127, 128, 190])
def test_an_operator_of_one_run_is_named_after_any_number_of_operators_before_it(
    before: int, why: Why
) -> None:
    chain: list[Call] = [("aten::mul_", (X,), (X,))] * before
    last: list[Call] = [("aten::add_", (X, Y), (X,)), ("aten::relu_", (X,), (X,))]
    a, b = operators(*chain, *last), operators(*chain, ("aten::roll", (Y,), (Y,)), *last)

    cause = why(([writer(0), reader(1, "x")], a.records), ([writer(0), reader(1, "z")], b.records))

    assert isinstance(cause, OperatorCause)
    assert (cause.names, cause.runs) == (("", "aten::roll"), "b")


def test_a_line_that_calls_an_operator_in_one_run_only_is_one_origin_of_all_that_is_computed() -> None:
    line = CallSite(0, "/p.py", 10, "step"), None
    cause = OperatorCause(("aten::add_", ""), ("", ""), "a", proven=True, through=("aten::mm",), sites=line)
    further = replace(cause, through=("aten::relu", "aten::mm"))

    assert cause.origin == further.origin is not None
    assert replace(cause, sites=(None, None)).origin is None
    assert replace(cause, runs="ab").origin is None and replace(cause, proven=False).origin is None


def test_a_kernels_different_result_explains_a_later_difference_through_an_operator(
    compared: Compare,
) -> None:
    mm = operators(("aten::mm", [Y], [X])).records

    divergences, comparison = compared(*(([writer(0, value, Y), reader(1, value)], mm) for value in "yz"))

    assert [kind_of(one) for one in divergences] == ["output"]
    assert comparison.notes.consequences == 1


def test_a_launch_that_reads_what_a_reported_one_read_is_a_consequence(compared: Compare) -> None:
    def run(value: str, *first: Call) -> Side:
        read = [reader(1, value), launch(2, arg("in_ptr", "in", value, storage=X), name="other")]
        return [writer(0, "y", Y), *read], operators(*first, ("aten::mm", [Y], [X])).records

    divergences, comparison = compared(run("y"), run("z", ("aten::add_", [Y], [Y])))

    assert [(kind_of(one), one.pair.launch.index) for one in divergences] == [("input", 1)]
    assert comparison.notes.consequences == 1


def test_a_launch_with_two_inputs_that_follow_is_one_consequence(compared: Compare) -> None:
    def run(value: str) -> Side:
        read = [arg(name, "in", value, storage=X) for name in ("left", "right")]
        return [writer(0, value), launch(1, *read, name="reader")], []

    assert compared(run("y"), run("z"))[1].notes.consequences == 1


def test_an_operator_with_swapped_operands_is_the_same_operator(compared: Compare) -> None:
    a, b = (operators(("aten::add", pair, [X])).records for pair in ([Y, 6], [6, Y]))

    divergences, comparison = compared(
        ([writer(0, "y", Y), reader(1, "y")], a), ([writer(0, "z", Y), reader(1, "z")], b)
    )

    assert [kind_of(one) for one in divergences] == ["output"]
    assert comparison.notes.consequences == 1


def test_a_missing_launch_before_an_operator_and_a_launch_of_its_kernel_is_what_is_missing(
    compared: Compare,
) -> None:
    def step(index: int, before: str, after: str) -> KernelLaunch:
        return launch(index, arg("ptr", "in_out", before, after, storage=X), name="add")

    a = [step(0, "x", "y"), step(1, "z", "w")], operators(("aten::add_", [X], [X]), after=1).records
    b = [step(0, "v", "u")], operators(("aten::add_", [X], [X]), after=0).records

    divergences, comparison = compared(a, b)

    assert [(kind_of(one), one.pair.a and one.pair.a.index) for one in divergences] == [("missing", 0)]
    assert comparison.notes.consequences == 1


def test_an_operator_of_one_run_does_not_make_the_launch_after_it_one_of_that_run(compared: Compare) -> None:
    def run(values: Sequence[str], more: int | None) -> Side:
        called = Operators()
        for step in range(len(values) + 1):
            called.call(step, "aten::max", [X], [Y])
            if step == more:
                called.call(step, "aten::mul_", [X], [X], arguments="2")
        steps = [arg("ptr", "in_out", *contents, storage=X) for contents in values]
        return [launch(step, one, name="scale") for step, one in enumerate(steps)], called.records

    divergences, _ = compared(run(["xy", "yz", "zw"], None), run(["xy", "yz", "uv", "vt"], 2))

    first, last = divergences
    assert isinstance(first, InputDiffers) and isinstance(first.cause, OperatorCause)
    assert (first.pair.launch.index, first.cause.names) == (2, ("", "aten::mul_"))
    assert isinstance(last, OneSided) and last.last


def test_an_operator_that_the_other_run_calls_later_is_reported_as_moved(compared: Compare) -> None:
    def run(values: str, after: int) -> Side:
        launches = [writer(0), reader(1, values[0]), reader(2, values[1])]
        return launches, operators(("aten::add_", [X], [X]), after=after).records

    divergences, _ = compared(run("yz", 2), run("zz", 1))

    assert [one.cause for one in divergences if isinstance(one, InputDiffers)] == [
        OperatorCause(("", "aten::add_"), ("", ""), "b", proven=True, how=OtherPoint())
    ]


def test_an_update_that_one_run_makes_at_an_earlier_step_differs_at_that_step(compared: Compare) -> None:
    def run(values: str, after: Sequence[int]) -> Side:
        called = Operators().call(0, "aten::ones", [], [X])
        for launches in after:
            called.call(launches, "aten::add_", [X], [X])
        return [reader(step, value) for step, value in enumerate(values)], called.records

    divergences, comparison = compared(run("xxyz", (2, 3)), run("xyzw", (1, 2, 3)))

    (first, *_) = divergences
    assert isinstance(first, InputDiffers) and isinstance(first.cause, OperatorCause)
    assert [one and one.index for one in (first.pair.a, first.pair.b)] == [1, 1]
    assert (first.cause.runs, comparison.notes.swapped) == ("b", 0)


def test_an_operator_after_the_reader_cannot_be_the_cause(why: Why) -> None:
    late = operators(("aten::add_", [X], [X]), after=2).records

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z")], late))

    assert cause == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_operators_that_write_constants_cause_no_difference(why: Why) -> None:
    zeros = operators(("aten::zeros", [], [X]), after=0).records

    assert why(([reader(0, "y")], zeros), ([reader(0, "z")], zeros)) == Host("", None)


def test_the_line_that_makes_a_tensor_of_other_values_is_named(why: Why) -> None:
    site = CallSite(0, "m.py", 5, "f")

    def made(bits: str) -> list[Record]:
        return [site, *Operators().call(0, "aten::lift_fresh", [], [X], bits=("", bits), site=0).records]

    cause = why(([reader(0, "y")], made("y")), ([reader(0, "z")], made("z")))

    assert cause == Host("", None, made=True, sites=(site, site))
    assert "called at m.py:5 in f" in cause_text(cause, ("a", "b"))


@pytest.mark.parametrize("digests", [True, False])
def test_a_tensor_that_the_program_made_of_other_values_is_the_programs(why: Why, digests: bool) -> None:
    def made(bits: str) -> list[Record]:
        calls = operators(("aten::lift_fresh", [], [X]), after=0).records
        return [*calls, OperatorDigests(0, (), (Digest(digits(bits)),))] if digests else calls

    cause = why(([reader(0, "y")], made("y")), ([reader(0, "z")], made("z")))

    assert cause == Host("", None, proven=digests, made=True)


# ---- copies, and several candidates


def test_a_copy_that_one_run_lacks_is_not_the_cause_of_what_was_written_into_it(why: Why) -> None:
    one = TensorMeta((1,), (1,), "float32", "cpu", 1)
    added = Operators().call(1, "aten::clone", [X], [Y]).call(1, "aten::copy_", [], [Y], meta=one)

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z", Y)], added.records))

    assert cause == OperatorCause(("", "aten::copy_"), ("", ""), "b", proven=True)


def test_the_host_is_the_cause_if_a_copy_has_other_bits_than_the_launch_that_it_copied(why: Why) -> None:
    added = operators(("aten::clone", [X], [Y])).records

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z", Y)], added))

    assert cause == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_a_launch_that_differs_is_the_cause_although_only_one_run_copies_its_result(
    compared: Compare,
) -> None:
    added = operators(("aten::clone", [X], [Y])).records

    divergences, comparison = compared(
        ([writer(0, "y"), reader(1, "y")], []), ([writer(0, "z"), reader(1, "z", Y)], added)
    )

    assert [kind_of(one) for one in divergences] == ["output"]
    assert comparison.notes.consequences == 1


def test_all_operators_that_only_one_run_calls_on_parts_of_a_tensor_are_named(why: Why) -> None:
    one = TensorMeta((1,), (1,), "float32", "cpu", 1)
    added = Operators().call(1, "aten::mul", [X], [Y]).call(1, "aten::fill_.Tensor", [], [Y], meta=one)

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z", Y)], added.records))

    assert cause == OperatorCause(
        ("", "aten::fill_.Tensor"), ("", ""), "b", proven=True, also=("aten::mul()",)
    )


def test_the_input_that_another_call_drew_is_the_likeliest_cause_and_the_others_are_named(why: Why) -> None:
    def run(value: str, draws: int) -> Side:
        called = Operators()
        called.call(0, "aten::randn", [], [6], arguments="size=[4]", random=True)
        called.call(0, "aten::randn", [], [5], arguments="size=[8]", random=True)
        for _ in range(draws):
            called.call(0, "aten::randn", [], [6], arguments="size=[4]", random=True)
        return [reader(0, value)], called.call(0, "aten::mm", [6, 5], [X]).records

    cause = why(run("y", 0), run("z", 1))

    assert cause == OperatorCause(
        ("aten::randn",) * 2, ("size=[4]",) * 2, "ab", proven=False, through=("aten::mm",),
        also=("aten::randn(size=[8])",), numbers=(1, 2), draws=("", "aten::randn(size=[4])"),
    )  # fmt: skip


def test_a_draw_of_one_run_before_equal_calls_is_named(why: Why) -> None:
    def run(value: str, *earlier: str) -> Side:
        called = Operators()
        for name in (*earlier, "aten::randn"):
            called.call(0, name, [], [X], random=True)
        return [reader(0, value)], called.records

    cause = why(run("y"), run("z", "aten::rand"))

    assert isinstance(cause, OperatorCause) and not cause.proven
    assert cause.draws == ("", "aten::rand()")


def test_the_line_of_a_draw_that_only_one_run_makes_is_named(why: Why) -> None:
    def run(value: str, *earlier: str) -> Side:
        called = Operators()
        for site, name in enumerate((*earlier, "aten::randn")):
            called.call(0, name, [], [X], random=True, site=site)
        lines = [CallSite(number, "/p.py", 10 + number, "step") for number in (0, 1)]
        return [reader(0, value)], [*called.records, *lines]

    cause = why(run("y"), run("z", "aten::rand"))

    assert isinstance(cause, OperatorCause)
    assert cause.draws == ("", "aten::rand(), called at /p.py:10 in step")


@pytest.mark.parametrize("other", ["z", "y"])
def test_digests_show_that_the_host_changed_an_input_of_an_operator(other: str, why: Why) -> None:
    def run(value: str) -> Side:
        called = Operators().call(0, "aten::randn", [], [6], bits=("", "r"), random=True)
        called.call(1, "aten::mm", [Y, 6], [X], bits=((value, "r"), f"of {value}"))
        return [writer(0, "y", Y), reader(1, f"of {value}")], called.records

    cause = why(run("v"), run(other))

    runs = "a" if other == "y" else "ab"
    assert cause == Host(runs, Writer(0, 0, "writer", "out_ptr"), through=("aten::mm",))  # type: ignore[arg-type]


def test_digests_show_that_the_host_changed_the_result_of_an_operator(why: Why) -> None:
    drawn = Operators().call(0, "aten::randn", [], [X], bits=("", "r"), random=True).records

    cause = why(([reader(0, "r")], drawn), ([reader(0, "z")], drawn))

    assert cause == Host("b", None, operator="aten::randn")


def test_a_copy_in_both_runs_is_less_suspect_than_other_numbers_of_the_program(why: Why) -> None:
    one = TensorMeta((1,), (1,), "float32", "cpu", 1)
    called = Operators().call(1, "aten::clone", [X], [Y])
    called.call(1, "aten::lift_fresh", [], [6], meta=one).call(1, "aten::copy_", [6], [Y], meta=one)

    cause = why(*(([writer(0), reader(1, value, Y)], called.records) for value in "yz"))

    assert cause == Host("", None, proven=False, made=True, through=("aten::copy_",))


def test_an_operator_of_one_run_whose_result_has_the_bits_of_its_input_is_not_the_cause(why: Why) -> None:
    added = Operators().call(1, "aten::relu", [X], [Y], bits=("y", "y")).records

    cause = why(([writer(0), reader(1, "y")], []), ([writer(0), reader(1, "z", Y)], added))

    assert cause == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_a_copy_of_a_part_in_one_run_does_not_accuse_the_host(why: Why) -> None:
    def run(value: str, copied: bool) -> Side:
        half = TensorMeta((2,), (1,), "float32", "cpu", 2)
        called = Operators().call(1, "aten::mm", [6], [X])
        if copied:
            called.call(1, "aten::clone", [X], [Y], meta=half)
            called.call(1, "aten::sin", [6], [Y], meta=msgspec.structs.replace(half, offset=0))
        return [writer(0), reader(1, value, Y if copied else X)], called.records

    cause = why(run("y", False), run("z", True))

    assert not isinstance(cause, Host)
    assert isinstance(cause, OperatorCause) and cause.names[1] == "aten::sin"


# ---- the host


@pytest.mark.parametrize(("read", "runs"), [("yz", "b"), ("zy", "a"), ("vz", "ab")])
def test_memory_read_with_other_bits_than_its_last_writer_left_was_changed_by_the_host(
    read: str, runs: str, why: Why
) -> None:
    cause = why(*(([writer(0), reader(1, value)], []) for value in read))

    assert cause == Host(runs, Writer(0, 0, "writer", "out_ptr"))  # type: ignore[arg-type]


def test_memory_that_was_freed_and_filled_by_the_host_was_not_written_by_its_former_owner(why: Why) -> None:
    # as of a checkpoint that is loaded to where other tensors were
    a, b = operators(("aten::sqrt", (Y,), (X,)), after=1), operators(after=1)

    cause = why(([writer(0), reader(1, "x")], a.records), ([writer(0), reader(1, "z")], b.records))

    assert cause == Host("", None, proven=False)


def test_a_tensor_that_was_overwritten_in_part_has_its_owner_still(why: Why) -> None:
    # its first writer left other bits than the reader found, because of the second one
    half = TensorMeta((2,), (1,), "float32", "cpu")
    sin = operators(("aten::sin", (X,), (Y,)), after=1)

    def run(storage: int, value: str, records: list[Record]) -> Side:
        into = KernelArg("out_ptr", "out", half, storage, None, Digest("old"), Digest("new"))
        return [writer(0), launch(1, into, name="second"), reader(2, value, storage)], records

    cause = why(run(X, "x", []), run(Y, "z", sin.records))

    assert cause == OperatorCause(("", "aten::sin"), ("", ""), "b", proven=True)


def test_memory_without_a_recorded_writer_may_come_from_the_host(why: Why) -> None:
    assert why(([reader(0, "y")], []), ([reader(0, "z")], [])) == Host("", None, proven=False)


def test_a_possible_change_by_the_host_is_followed_through_an_operator(why: Why) -> None:
    mm = operators(("aten::mm", [Y], [X]), after=0).records

    cause = why(([reader(0, "y")], mm), ([reader(0, "z")], mm))

    assert cause == Host("", None, proven=False, through=("aten::mm",))


def part(name: str, role: str, start: int, before: str, after: str | None = None) -> KernelArg:
    """Two adjacent elements of the storage X."""
    meta = TensorMeta((2,), (1,), "float32", "cpu", start)
    return KernelArg(name, role, meta, X, None, Digest(before), Digest(after or before))  # type: ignore[arg-type]


def test_slices_of_one_storage_have_their_own_writers(why: Why) -> None:
    def run(value: str) -> Side:
        first = launch(0, part("out_ptr", "out", 0, "old", "y"), name="first")
        second = launch(1, part("out_ptr", "out", 2, "old", "y"), name="second")
        return [first, second, launch(2, part("in_ptr", "in", 0, value), name="reader")], []

    assert why(run("y"), run("z")) == Host("b", Writer(0, 0, "first", "out_ptr"))


def test_an_operator_that_wrote_one_slice_is_not_accused_of_the_adjacent_slice(why: Why) -> None:
    half = TensorMeta((2,), (1,), "float32", "cpu", 2)
    filled = Operators().call(1, "aten::mul_", [], [X], meta=half).records

    def run(value: str) -> Side:
        first = launch(0, part("out_ptr", "out", 0, "old", "y"), name="first")
        return [first, launch(1, part("in_ptr", "in", 0, value), name="reader")], filled

    assert why(run("y"), run("z")) == Host("b", Writer(0, 0, "first", "out_ptr"))


def test_a_different_view_of_a_written_buffer_is_compared_through_the_writers_own_view(why: Why) -> None:
    def run(left: str, value: str) -> Side:
        read = launch(1, part("in_ptr", "in", 0, value), name="reader")
        return [writer(0), read], [Reread(1, 0, 0, 0, digits(left))]

    assert why(run("y", "y"), run("poked", "z")) == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_a_write_without_a_digest_cannot_be_decided(why: Why) -> None:
    (written,) = writer(0).args
    unread = msgspec.structs.replace(writer(0), args=(msgspec.structs.replace(written, after=None),))

    cause = why(([unread, reader(1, "y")], []), ([unread, reader(1, "z")], []))

    assert cause == UnknownCause("the outputs of launch #0 writer have no digests")


def test_an_operator_called_once_more_on_another_tensor_is_called_otherwise(why: Why) -> None:
    clones = ("aten::clone", [4], [5]), ("aten::clone", [4], [6])
    copy, other = ("aten::copy_", [5], [X]), ("aten::copy_", [6], [X])

    cause = why(
        ([reader(0, "y")], operators(*clones, copy, other, after=0).records),
        ([reader(0, "z")], operators(*clones, copy, after=0).records),
    )

    assert isinstance(cause, OperatorCause)
    assert cause.names == ("aten::copy_",) * 2
    assert cause.how == OtherInput("call 2 of aten::clone", "call 1 of aten::clone")


def updates(*after: int, bits: Sequence[str] = ()) -> list[Record]:
    """In-place updates of X, each after a number of launches and with the bits that it leaves."""
    called = Operators()
    for number, launches in enumerate(after):
        called.call(launches, "aten::add_", [X, Y], [X], bits=("g", bits[number]) if bits else None)
    return called.records


@pytest.mark.parametrize("bits", [("y", "z"), ()], ids=["digests", "no digests"])
def test_an_update_that_one_run_skips_is_the_cause_and_not_what_it_reads(
    bits: Sequence[str], why: Why
) -> None:
    launches = [writer(0), reader(1, "y")]

    cause = why(
        ([*launches, reader(2, "z")], updates(1, 2, bits=bits)),
        ([*launches, reader(2, "y")], updates(1, bits=bits)),
    )

    assert cause == OperatorCause(("aten::add_", ""), ("", ""), "a", proven=True, how=MoreCalls(1))


def test_an_update_that_one_run_skips_is_counted_on_its_own_tensor(compared: Compare) -> None:
    def run(skipped: int, values: str) -> Side:
        called = Operators().call(0, "aten::ones", [], [X]).call(0, "aten::ones", [], [Y])
        for step in (1, 2):
            for number, storage in enumerate((X, Y)):
                if 2 * step + number != skipped:
                    called.call(step, "aten::mul_", [storage], [storage], arguments="0.5")
        return [reader(step, value) for step, value in enumerate(values)], called.records

    divergences, _ = compared(run(0, "xyz"), run(4, "xyy"))

    assert [one.cause for one in divergences if isinstance(one, InputDiffers)] == [
        OperatorCause(("aten::mul_", ""), ("0.5", ""), "a", proven=True, how=MoreCalls(1))
    ]


@pytest.mark.parametrize("bits", [("x", "y"), ()], ids=["digests", "no digests"])
def test_an_earlier_call_of_one_run_does_not_make_later_ones_calls_of_that_run_only(
    bits: Sequence[str], why: Why
) -> None:
    cause = why(
        ([writer(0), reader(1, "y")], updates(0, 1, bits=bits)),
        ([writer(0), reader(1, "z")], updates(1, bits=["z"] if bits else ())),
    )

    assert not isinstance(cause, OperatorCause) or not isinstance(cause.how, MoreCalls)


def test_a_launch_that_another_one_overwrote_in_only_one_run_changed_its_order(compared: Compare) -> None:
    def run(names: str, value: str) -> Side:
        scale = launch(0, part("out_ptr", "out", 2, "old", "s"), name="scale")
        made = {"s": scale, "w": writer(0)}
        launches = [msgspec.structs.replace(made[name], index=n) for n, name in enumerate(names)]
        copied = operators(("aten::copy_", [X], [Y]), after=2).records
        return [*launches, reader(2, value, Y)], copied

    differences, _ = compared(run("sw", "one"), run("ws", "two"))

    assert [kind_of(one) for one in differences] == ["order"]


# ---- launches that wrote another tensor


def test_a_launch_that_wrote_another_tensor_is_accused_and_not_who_reads_it(why: Why) -> None:
    def run(value: str, storage: int) -> Side:
        born = operators(("aten::zeros", [], [X]), ("aten::zeros", [], [Y]), after=0).records
        return [writer(0, "y", storage), reader(1, value)], born

    assert why(run("y", X), run("0", Y)) == WrittenElsewhere(Writer(0, 0, "writer", "out_ptr"), "a")


def test_a_launch_that_wrote_another_slice_is_accused_and_not_who_reads_it(why: Why) -> None:
    def run(value: str, start: int) -> Side:
        born = operators(("aten::zeros", [], [X]), after=0).records
        first = launch(0, part("out_ptr", "out", start, "old", "y"), name="writer")
        return [first, launch(1, part("in_ptr", "in", 0, value), name="reader")], born

    assert why(run("y", 0), run("0", 2)) == WrittenElsewhere(Writer(0, 0, "writer", "out_ptr"), "a")


def test_who_reads_another_tensor_is_passed_another_one(why: Why) -> None:
    def run(value: str, storage: int) -> Side:
        born = operators(("aten::zeros", [], [X]), ("aten::zeros", [], [Y]), after=0).records
        return [writer(0, "y", X), writer(1, "w", Y, "other"), reader(2, value, storage)], born

    assert why(run("y", X), run("w", Y)) == OtherTensor("launch #0 writer", "launch #1 other")


# ---- operators that wrote another tensor


def born(*storages: int) -> list[tuple[str, Sequence[int], Sequence[int]]]:
    return [("aten::zeros", [], [storage]) for storage in storages]


def target(storage: int, *, births: Sequence[int] = (X, Y)) -> list[Record]:
    return operators(*born(*births), ("aten::copy_", [6], [storage]), after=0).records


def test_an_operator_that_wrote_another_tensor_is_accused_and_not_who_reads_it(why: Why) -> None:
    cause = why(([reader(0, "y")], target(X)), ([reader(0, "0")], target(Y)))

    assert cause == OperatorCause(
        ("aten::copy_",) * 2, ("", ""), "a", proven=True, how=OtherTarget(1, "tensor")
    )


def test_the_second_of_two_equal_calls_that_wrote_another_tensor_is_accused(why: Why) -> None:
    def run(value: str, storage: int) -> Side:
        calls = ("aten::copy_", [6], [X]), ("aten::copy_", [6], [storage])
        return [reader(0, value)], operators(*born(X, Y), *calls, after=0).records

    cause = why(run("y", X), run("0", Y))

    assert isinstance(cause, OperatorCause)
    assert (cause.runs, cause.how) == ("a", OtherTarget(2, "tensor"))


def test_an_operator_that_wrote_another_part_of_the_tensor_is_accused(why: Why) -> None:
    def run(value: str, start: int) -> Side:
        half = TensorMeta((2,), (1,), "float32", "cpu", start)
        called = Operators().call(0, "aten::zeros", [], [X]).call(0, "aten::mul_", [], [X], meta=half)
        return [reader(0, value)], called.records

    cause = why(run("y", 0), run("0", 2))

    assert isinstance(cause, OperatorCause)
    assert (cause.runs, cause.how) == ("a", OtherTarget(1, "elements"))


def test_the_calls_of_an_operator_in_another_order_on_the_same_tensors_pass_no_other_tensor(why: Why) -> None:
    def run(value: str, order: Sequence[int]) -> Side:
        calls = [("aten::copy_", [source], [into]) for source, into in zip((5, 6), order, strict=True)]
        made = ("aten::rand", [], [5]), ("aten::randn", [], [6])
        return [reader(0, value)], operators(*born(X, Y), *made, *calls, after=0).records

    cause = why(run("y", (X, Y)), run("z", (Y, X)))

    assert cause == OperatorCause(
        ("aten::rand", "aten::randn"), ("", ""), "ab", proven=True, through=("aten::copy_",)
    )


def test_an_operator_before_the_launch_that_overwrites_it_passes_no_other_tensor(why: Why) -> None:
    def run(value: str, after: int) -> Side:
        added = Operators().call(0, "aten::zeros", [], [X]).call(after, "aten::add_", [], [X])
        return [writer(0), reader(1, value)], added.records

    cause = why(run("z", 1), run("y", 0))

    assert cause == OperatorCause(("aten::add_", ""), ("", ""), "ab", proven=True)


def test_it_is_not_decided_who_is_to_blame_if_the_tensors_cannot_be_identified(why: Why) -> None:
    cause = why(([reader(0, "y")], target(X)), ([reader(0, "0")], target(Y, births=(5, X, Y))))

    assert cause == OtherTensor("call 1 of aten::copy_", "call 2 of aten::zeros", proven=False)


def test_a_later_reader_of_the_other_target_follows_from_the_operator(compared: Compare) -> None:
    def run(values: str, storage: int) -> Side:
        second = launch(1, arg("in_ptr", "in", values[1], storage=Y), name="second")
        return [reader(0, values[0]), second], target(storage)

    divergences, comparison = compared(run("y0", X), run("0y", Y))

    assert [kind_of(one) for one in divergences] == ["input"]
    assert comparison.notes.consequences == 1


# ---- what the case began with


def start(name: str, bits: str, storage: int) -> Start:
    return Start(name, TensorValue(META, Digest(digits(bits)), {X: 4096, Y: 4112}[storage]))


BEGIN = [Storage(X, 4096, 16), Storage(Y, 4112, 16), start("input 0", "x", X), start("input 1", "y", Y)]


def test_an_input_of_the_case_that_is_read_instead_of_another_is_another_tensor(why: Why) -> None:
    cause = why(([reader(0, "x", X)], BEGIN), ([reader(0, "y", Y)], BEGIN))

    assert cause == OtherTensor("input 0", "input 1")


def test_an_operator_that_is_called_on_another_input_of_the_case_is_called_otherwise(why: Why) -> None:
    def run(value: str, read: int) -> Side:
        return [reader(0, value, 9)], [*BEGIN, *operators(("aten::mm", [read], [9]), after=0).records]

    cause = why(run("one", X), run("two", Y))

    assert cause == OperatorCause(
        ("aten::mm",) * 2, ("", ""), "ab", proven=True, how=OtherInput("input 0", "input 1")
    )


def test_the_host_changed_what_is_read_otherwise_than_the_case_began_with_it(why: Why) -> None:
    assert why(([reader(0, "x")], BEGIN), ([reader(0, "poked")], BEGIN)) == Host("b", None)


def test_a_read_that_differs_from_the_start_of_the_case_is_not_proven_to_have_an_operator_as_cause(
    compared: Compare,
) -> None:
    other = [*BEGIN[:2], start("input 0", "w", X)]

    (divergence,), _ = compared(([reader(0, "x")], BEGIN), ([reader(0, "w")], other))

    assert isinstance(divergence, InputDiffers) and not isinstance(
        divergence.cause, OperatorCause | OtherTensor
    )
    assert not getattr(divergence.cause, "proven", False)


def test_the_state_of_a_random_generator_does_not_explain_reused_memory(why: Why) -> None:
    state = [*BEGIN[:2], start("torch's random generator", "x", X)]

    assert why(([reader(0, "y")], state), ([reader(0, "z")], state)) == Host("", None, proven=False)


# ---- the program, and streams


def test_a_program_that_passes_a_different_tensor_is_the_cause(why: Why) -> None:
    def run(value: str, storage: int) -> Side:
        return [writer(0), writer(1, "w", Y, "other"), reader(2, value, storage)], []

    cause = why(run("y", X), run("w", Y))

    assert cause == OtherTensor("launch #0 writer", "launch #1 other")


def test_a_result_written_on_another_stream_may_come_too_late(why: Why) -> None:
    def run(value: str) -> Side:
        return [msgspec.structs.replace(writer(0), stream=1), reader(1, value)], []

    assert why(run("y"), run("early")) == StreamCause(Writer(0, 0, "writer", "out_ptr"))


# ---- memory that nobody wrote, and out of bounds

EMPTY = operators(("aten::empty", [], [X]), after=0).records
EMPTY[0] = msgspec.structs.replace(EMPTY[0], allocates=True)


def test_allocated_but_unwritten_memory_is_uninitialised(why: Why) -> None:
    assert why(([reader(0, "one")], EMPTY), ([reader(0, "two")], EMPTY)) == Uninitialised(None)


def test_memory_that_was_reallocated_no_longer_holds_earlier_writes(why: Why) -> None:
    again = operators(("aten::empty", [], [X]))
    again.records[0] = EMPTY[0]

    def run(value: str) -> Side:
        return [writer(0), reader(1, value)], again.records

    assert why(run("one"), run("two")) == Uninitialised(None)


def test_uninitialised_memory_that_changes_no_result_is_no_difference(compared: Compare) -> None:
    divergences, comparison = compared(*(([reader(0, value, result="y")], EMPTY) for value in ("one", "two")))

    assert (divergences, comparison.notes.uninitialised) == ([], 0)


def test_uninitialised_memory_that_an_operator_propagated_is_traced_to_the_allocation(why: Why) -> None:
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


def test_equal_reads_are_no_difference_whatever_the_adjacent_memory_holds(compared: Compare) -> None:
    seen = Access(0, {0: digits("seen")}, {1: digits("left")})

    divergences, _ = compared(*(([reader(0, value)], [seen]) for value in ("one", "two")))

    assert divergences == []


ADDRESSES = [Storage(X, 4096, 16), Storage(Y, 4112, 16)]


def overrun(launch: int) -> OutOfBounds:
    """`writer` stores four elements past the end of X, which hits Y."""
    return OutOfBounds(launch, "out_ptr", "store", 4, (0, 0, 0), 4112, 4128, 4, False, "k.py:3")


def test_a_launch_that_overran_its_argument_in_one_run_is_the_cause_for_the_overwritten_buffers_reader(
    why: Why,
) -> None:
    def run(value: str, *outside: OutOfBounds) -> Side:
        launches = [writer(0, "neighbour", Y, "neighbour"), writer(1), reader(2, value, Y)]
        return launches, [*ADDRESSES, *outside]

    cause = why(run("neighbour"), run("hit", overrun(1)))

    assert cause == Overrun(Writer(None, 1, "writer", "out_ptr"), "b")


def test_a_launch_that_overran_its_argument_in_both_runs_is_the_cause_too(why: Why) -> None:
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
    (divergence,) = verdict.results
    return verdict.comparison.cause_of(divergence)


def test_a_result_that_changed_after_the_last_launch_was_changed_by_the_host(tmp_path: Path) -> None:
    sides = (([writer(0)], [*ADDRESSES, result(bits, X)]) for bits in "yz")

    assert of_result(tmp_path, *sides) == Host("b", Writer(0, 0, "writer", "out_ptr"))


def test_a_result_that_an_operator_of_one_run_wrote_last_was_caused_by_the_operator(tmp_path: Path) -> None:
    added = operators(("aten::add_", [X], [X])).records
    a = [writer(0)], [*ADDRESSES, result("y", X)]
    b = [writer(0)], [*ADDRESSES, *added, result("z", X)]

    assert of_result(tmp_path, a, b) == OperatorCause(("", "aten::add_"), ("", ""), "b", proven=True)


def test_a_result_with_elements_that_nobody_wrote_is_uninitialised(tmp_path: Path) -> None:
    sides = (([], [*ADDRESSES, *EMPTY, result(bits, X, uninitialised=(1, 3))]) for bits in "yz")

    assert of_result(tmp_path, *sides) == Uninitialised(None, (1, 3))


def test_a_result_with_an_unknown_address_has_no_known_cause(tmp_path: Path) -> None:
    sides = (([writer(0)], [*ADDRESSES, result(bits, X, address=0)]) for bits in "yz")

    assert of_result(tmp_path, *sides) is None
