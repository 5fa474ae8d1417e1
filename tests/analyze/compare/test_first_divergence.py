"""Which divergences two runs have, in which order, of which kind, with which producer and consequences."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from benchmarks.test_compare import write
from handmade.records import META, arg, launch
from handmade.runs import digits, saved

from tracing import store
from tracing.analyze.compare.accused import accused
from tracing.analyze.compare.cause_kinds import OperatorCause, StreamCause, Uninitialised
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchPair,
    argument_of,
    key_of,
    kind_of,
)
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.runs.determinism import unasked
from tracing.model import CallSite, Digest, KernelArg, KernelLaunch, Perturbed, Winner
from tracing.report.compare.divergence import divergence_text

Launches = list[KernelLaunch]


@pytest.fixture
def compared(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Compares two runs of the given launches; returns the divergences and the comparison."""

    def compare(a: Launches, b: Launches, **options: bool) -> tuple[list[Divergence], Comparison]:
        comparison = Comparison(saved(tmp_path / "a", a), saved(tmp_path / "b", b, **options))
        return list(comparison), comparison

    return compare


def writer(index: int, value: str, name: str = "writer", storage: int = 7) -> KernelLaunch:
    return launch(index, arg("out_ptr0", "out", "old", value, storage=storage), name=name)


def reader(index: int, value: str, name: str = "reader", storage: int = 7, result: str = "z") -> KernelLaunch:
    into = arg("out_ptr0", "out", "old", result, storage=storage + 100)
    return launch(index, arg("in_ptr0", "in", value, storage=storage), into, name=name)


def test_equal_runs_have_no_divergence(compared) -> None:  # type: ignore[no-untyped-def]
    run = [writer(0, "x"), reader(1, "x")]

    divergences, comparison = compared(run, run)

    assert (divergences, comparison.notes.pairs, comparison.notes.complete) == ([], 2, True)


def test_a_kernel_with_equal_inputs_and_unequal_outputs_is_itself_to_blame(compared) -> None:  # type: ignore[no-untyped-def]
    (divergence,), _ = compared([reader(0, "x", result="y")], [reader(0, "x", result="z")])

    assert (kind_of(divergence), argument_of(divergence)) == ("output", "out_ptr0")
    assert [one.args[1].after.bits for one in (divergence.pair.a, divergence.pair.b)] == [
        digits("y"),
        digits("z"),
    ]
    assert accused(divergence).kind == "kernel"


def test_an_uninitialised_output_buffer_never_makes_two_runs_differ(compared) -> None:  # type: ignore[no-untyped-def]
    a, b = ([launch(0, arg("out_ptr0", "out", garbage, "y"))] for garbage in ("one", "two"))

    assert compared(a, b)[0] == []


def test_a_buffer_rewritten_with_the_same_bits_is_still_an_output(compared) -> None:  # type: ignore[no-untyped-def]
    a, b = ([launch(0, arg("out_ptr0", "out", "y", y))] for y in ("y", "z"))

    assert [kind_of(one) for one in compared(a, b)[0]] == ["output"]


def test_a_result_over_memory_that_differed_before_may_be_unwritten_and_its_reader_is_reported(
    compared,
) -> None:  # type: ignore[no-untyped-def]
    def run(rest: str) -> Launches:
        return [
            launch(0, arg("out_ptr0", "out", rest, "x" + rest, storage=7), name="partial"),
            reader(1, "x" + rest, result=rest),
        ]

    (divergence,), comparison = compared(run("a"), run("b"))

    assert (kind_of(divergence), divergence.pair.launch.kernel_name, argument_of(divergence)) == (
        "input",
        "reader",
        "in_ptr0",
    )
    assert isinstance(divergence.cause, Uninitialised)
    assert (divergence.cause.writer.kernel_name, comparison.notes.unwritten) == ("partial", 1)


def overwriting(value: str, result: str) -> KernelLaunch:
    """A launch that overwrites a tensor which was therefore not digested before."""
    out = msgspec.structs.replace(arg("out_ptr0", "out", "old", result), before=None)
    return launch(0, arg("in_ptr0", "in", value), out)


def digesting(value: str, rest: str, result: str) -> KernelLaunch:
    return launch(0, arg("in_ptr0", "in", value), arg("out_ptr0", "out", rest, result))


def test_an_overwritten_tensor_without_a_digest_before_is_compared_after_the_launch(compared) -> None:  # type: ignore[no-untyped-def]
    divergences, comparison = compared([overwriting("x", "y")], [overwriting("x", "z")])

    assert [(kind_of(one), argument_of(one)) for one in divergences] == [("output", "out_ptr0")]
    assert (comparison.notes.unwritten, comparison.notes.undigested) == (0, 0)


def test_an_input_differs_also_if_the_output_has_no_digest_before(compared) -> None:  # type: ignore[no-untyped-def]
    divergences, _ = compared([overwriting("x", "y")], [overwriting("w", "z")])

    assert [(kind_of(one), argument_of(one)) for one in divergences] == [("input", "in_ptr0")]


def test_a_run_that_digested_an_overwritten_tensor_before_equals_one_that_did_not(compared) -> None:  # type: ignore[no-untyped-def]
    equal, comparison = compared([digesting("x", "rest", "y")], [overwriting("x", "y")])
    assert (equal, comparison.notes.complete) == ([], True)


def test_a_result_differs_from_that_of_a_run_that_digested_it_before_too(compared) -> None:  # type: ignore[no-untyped-def]
    divergences, _ = compared([digesting("x", "rest", "y")], [overwriting("x", "z")])

    assert [(kind_of(one), argument_of(one)) for one in divergences] == [("output", "out_ptr0")]


def test_unwritten_memory_that_changes_no_result_is_not_reported(compared) -> None:  # type: ignore[no-untyped-def]
    def run(rest: str) -> Launches:
        return [launch(0, arg("out_ptr0", "out", rest, "x" + rest, storage=7)), reader(1, "x" + rest)]

    divergences, comparison = compared(run("a"), run("b"))

    assert (divergences, comparison.notes.unwritten) == ([], 1)


def partly(result: str, rest: str) -> KernelLaunch:
    """A launch whose output's second range held `rest` before the launch."""
    before, after = (Digest(word + rest, f"{word}{rest}") for word in ("old", result))
    return launch(0, KernelArg("out_ptr0", "out", META, 7, None, before, after))


def test_a_result_over_memory_that_was_equal_before_is_caused_by_the_launch(compared) -> None:  # type: ignore[no-untyped-def]
    (divergence,), comparison = compared([partly("aaa", "123")], [partly("bbb", "456")])

    assert (kind_of(divergence), argument_of(divergence), comparison.notes.unwritten) == (
        "output",
        "out_ptr0",
        0,
    )


def test_memory_that_differed_before_a_launch_and_stayed_unchanged_is_not_its_result(compared) -> None:  # type: ignore[no-untyped-def]
    divergences, comparison = compared([partly("aaa", "123")], [partly("aaa", "456")])

    assert (divergences, comparison.notes.unwritten) == ([], 0)
    assert comparison.notes.suspect.doubt == "untouched"


def test_an_input_that_was_written_on_another_stream_is_reported_as_such(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str) -> Launches:
        return [msgspec.structs.replace(writer(0, "y"), stream=1), reader(1, value)]

    (divergence,), _ = compared(run("y"), run("early"))

    assert isinstance(divergence.cause, StreamCause)
    assert divergence.cause.writer.kernel_name == "writer"


def test_an_operator_that_only_one_run_calls_is_named_with_that_run(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str, operator: str | None) -> Launches:
        return [writer(0, "y"), launch(1, arg("in_ptr0", "in", value, storage=7, writer=operator))]

    (divergence,), _ = compared(run("y", None), run("z", "aten::add_.Tensor"))

    assert divergence.cause == OperatorCause(("", "aten::add_.Tensor"), ("", ""), "b", proven=True)


def test_an_argument_declared_as_input_but_seen_to_change_is_an_output(compared) -> None:  # type: ignore[no-untyped-def]
    a, b = ([launch(0, arg("in_ptr0", "in", "x", y))] for y in ("y", "z"))

    assert [kind_of(one) for one in compared(a, b)[0]] == ["output"]


def test_the_producer_is_the_launch_that_last_wrote_the_buffer_not_the_previous_one(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str) -> Launches:
        return [writer(0, "y"), writer(1, "w", "between", storage=8), reader(2, value)]

    (divergence,), _ = compared(run("y"), run("changed"))

    assert (kind_of(divergence), divergence.pair.launch.index, argument_of(divergence)) == (
        "input",
        2,
        "in_ptr0",
    )
    assert (divergence.cause.writer.a, divergence.cause.writer.kernel_name) == (0, "writer")


def test_a_change_by_the_host_between_two_launches_names_the_run_it_happened_in(compared) -> None:  # type: ignore[no-untyped-def]
    (divergence,), _ = compared([writer(0, "y"), reader(1, "y")], [writer(0, "y"), reader(1, "host")])

    assert (accused(divergence).kind, divergence.cause.writer.kernel_name, divergence.cause.runs) == (
        "host",
        "writer",
        "b",
    )


def test_an_input_that_no_launch_wrote_comes_from_the_host(compared) -> None:  # type: ignore[no-untyped-def]
    (divergence,), _ = compared([reader(0, "x")], [reader(0, "y")])

    assert (kind_of(divergence), accused(divergence).kind, divergence.cause.writer) == ("input", "host", None)


def test_an_input_that_an_operator_wrote_last_names_the_operator(compared) -> None:  # type: ignore[no-untyped-def]
    a, b = ([launch(0, arg("in_ptr0", "in", x, writer="aten::mm.out"))] for x in ("x", "y"))

    (divergence,), _ = compared(a, b)
    assert (accused(divergence).kind, accused(divergence).name, accused(divergence).certain) == (
        "operator",
        "aten::mm.out",
        False,
    )


def test_differences_after_reading_a_diverged_result_are_counted_as_consequences(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str) -> Launches:
        return [writer(0, value), reader(1, value, result=value), reader(2, value, storage=107)]

    divergences, comparison = compared(run("x"), run("y"))

    assert [(kind_of(one), one.pair.launch.index) for one in divergences] == [("output", 0)]
    assert comparison.notes.consequences == 2


def test_a_second_fault_that_reads_nothing_diverged_is_reported_too(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str) -> Launches:
        return [writer(0, value), writer(1, value, "second", storage=8)]

    assert [one.pair.launch.kernel_name for one in compared(run("x"), run("y"))[0]] == ["writer", "second"]


def test_a_buffer_overwritten_with_equal_bits_no_longer_carries_the_difference(compared) -> None:  # type: ignore[no-untyped-def]
    def run(value: str) -> Launches:
        return [writer(0, value), writer(1, "same", "heals"), reader(2, "host " + value)]

    assert [(kind_of(one), one.pair.launch.index) for one in compared(run("x"), run("y"))[0]] == [
        ("output", 0),
        ("input", 2),
    ]


def test_repeated_divergences_of_one_kernel_are_reported_once_and_counted(compared) -> None:  # type: ignore[no-untyped-def]
    a, b = ([writer(index, f"{run}{index}") for index in range(5)] for run in "ab")

    divergences, comparison = compared(a, b)

    assert [one.pair.launch.index for one in divergences] == [0]
    assert comparison.repeated[key_of(divergences[0])] == 5


def scheduled(arguments: tuple[str, str], line: int) -> InputDiffers:
    """An input that an operator of this line wrote with these arguments."""
    sites = CallSite(0, "/train.py", line, "step"), CallSite(0, "/train.py", line, "step")
    cause = OperatorCause(("aten::add_",) * 2, arguments, "ab", proven=True, sites=sites)
    return InputDiffers(LaunchPair(0, reader(1, "y"), reader(1, "z")), 0, cause)


@pytest.mark.parametrize(
    ("later", "line", "repeats"),
    [
        (("alpha=-0.05", "alpha=-0.1"), 9, True),  # the next step of a schedule
        (("other=1, alpha=-0.05", "other=2, alpha=-0.05"), 9, False),
        (("alpha=-0.05", "alpha=-0.1"), 12, False),
    ],
)
def test_an_operator_of_one_line_repeats_the_scalar_that_changed(
    later: tuple[str, str], line: int, repeats: bool
) -> None:
    first = scheduled(("alpha=-0.1", "alpha=-0.2"), 9)

    assert (key_of(first) == key_of(scheduled(later, line))) is repeats


@pytest.mark.parametrize(("change", "named"), [({"grid": 2}, "grid"), ({"num_warps": 8}, "num_warps")])
def test_a_different_configuration_is_shown_for_both_runs_with_the_outputs_it_changed(
    compared, change, named
) -> None:  # type: ignore[no-untyped-def]
    def run(result: str, **change: int) -> Launches:
        return [launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", result), **change)]

    (divergence,), _ = compared(run("y"), run("z", **change))

    assert (kind_of(divergence), divergence.outputs) == ("launch", ("out_ptr0",))
    assert [one.name for one in divergence.changes] == [named]
    assert accused(divergence).kind == "configuration"


@pytest.mark.parametrize("also", ["", "input"])
def test_another_winner_is_no_cause_of_an_input_that_differs(also: str, tmp_path: Path) -> None:
    runs = []
    for name, warps, read in (("a", 4, "x"), ("b", 8, "y" if also else "x")):
        one = launch(0, arg("in_ptr0", "in", read), arg("out_ptr0", "out", "old", read), num_warps=warps)
        winner = Winner("inductor", one.kernel_name, "", (), {"num_warps": warps})
        runs.append(saved(tmp_path / name, [one], [winner]))

    divergences = list(Comparison(*runs))
    said = " ".join(line.plain for line in divergence_text(divergences[-1]))

    assert list(map(kind_of, divergences)) == [*filter(None, [also]), "launch"]
    assert ("nothing else differs" in said, "differ, too: in_ptr0" in said) == (not also, bool(also))
    asked = unasked(divergences, [Perturbed("winners", "slowest, 1 kernel")])
    assert list(map(kind_of, asked)) == [*filter(None, [also])]


def test_inputs_of_a_launch_that_the_program_launches_differently_are_named(compared) -> None:  # type: ignore[no-untyped-def]
    def run(read: str, grid: int) -> Launches:
        return [launch(0, arg("in_ptr0", "in", read), arg("out_ptr0", "out", "old", "z"), grid=grid)]

    (divergence,), _ = compared(run("x", 1), run("y", 2))

    assert (kind_of(divergence), divergence.inputs) == ("launch", ("in_ptr0",))


def test_a_kernel_replaced_by_another_is_a_difference_of_the_launch(compared) -> None:  # type: ignore[no-untyped-def]
    tail = [reader(index, "x", f"k{index}") for index in range(1, 6)]
    (divergence,), _ = compared([writer(0, "x"), *tail], [writer(0, "x", "other"), *tail])

    assert (kind_of(divergence), divergence.changes[0]) == ("launch", ("kernel", "writer", "other"))


def renumbered(launches: Launches) -> Launches:
    return [msgspec.structs.replace(one, index=index) for index, one in enumerate(launches)]


@pytest.mark.parametrize(("swapped", "kind"), [(False, "added"), (True, "missing")])
def test_an_extra_launch_in_one_run_does_not_shift_later_launches(compared, swapped, kind) -> None:  # type: ignore[no-untyped-def]
    run = [reader(index, f"{index}", f"k{index}") for index in range(8)]
    longer = renumbered([*run[:3], reader(0, "x", "extra", storage=50), *run[3:]])

    divergences, comparison = compared(longer, run) if swapped else compared(run, longer)

    assert [(kind_of(one), one.pair.launch.index, one.pair.launch.kernel_name) for one in divergences] == [
        (kind, 3, "extra")
    ]
    assert comparison.notes.pairs == 8


def test_an_added_launch_that_overwrites_a_buffer_explains_the_buffers_reader(compared) -> None:  # type: ignore[no-untyped-def]
    tail = [reader(index, "x", f"k{index}", storage=index) for index in range(20, 26)]
    a = renumbered([writer(0, "y"), reader(1, "y"), *tail])
    b = renumbered([writer(0, "y"), writer(1, "w", "extra"), reader(2, "w"), *tail])

    divergences, comparison = compared(a, b)

    assert [(kind_of(one), one.pair.launch.kernel_name) for one in divergences] == [("added", "extra")]
    assert comparison.notes.consequences == 1


def test_a_run_that_ends_early_diverges_at_its_end(compared) -> None:  # type: ignore[no-untyped-def]
    run = [reader(0, "x"), reader(1, "x", "last"), reader(2, "x", "last")]

    (divergence,), _ = compared(run, run[:1])

    assert (kind_of(divergence), divergence.pair.launch.index, divergence.count) == ("end", 1, 2)


@pytest.mark.parametrize(("last", "kinds"), [(2, ["added"]), (3, ["added", "end"])])
def test_launches_that_the_last_step_lacks_repeat_those_that_each_step_lacks(compared, last, kinds) -> None:  # type: ignore[no-untyped-def]
    def steps(update: int) -> Launches:
        each = [[reader(0, "x", name) for name in ("forward", "backward")] for _ in range(3)]
        counts = (2, 2, last) if update else (0, 0, 0)
        updates = [[reader(0, "x", "update")] * count for count in counts]
        return renumbered([one for step in zip(each, updates, strict=True) for part in step for one in part])

    divergences, comparison = compared(steps(0), steps(1))

    assert [kind_of(one) for one in divergences] == kinds
    assert comparison.repeated[key_of(divergences[0])] == 4 - len(kinds)


def test_an_interrupted_run_is_compared_up_to_the_interruption_and_reported_as_interrupted(compared) -> None:  # type: ignore[no-untyped-def]
    run = [reader(0, "x"), reader(1, "x", "last")]

    divergences, comparison = compared(run, run[:1], ended=False)

    assert (divergences, comparison.notes.complete) == ([], False)
    assert (
        "was interrupted, or is still being recorded; later launches are not compared"
        in comparison.notes.notes[0]
    )


def test_streams_that_interleave_differently_compare_equal(compared) -> None:  # type: ignore[no-untyped-def]
    def on(stream: int) -> Launches:
        launches = [reader(n, "x", f"s{stream}k{n}", storage=n + 50 * stream) for n in range(10)]
        return [msgspec.structs.replace(one, stream=stream) for one in launches]

    alternating = [one for both in zip(on(1), on(2), strict=True) for one in both]
    divergences, comparison = compared(renumbered(alternating), renumbered([*on(2), *on(1)]))

    assert (divergences, comparison.notes.pairs) == ([], 20)


def test_a_rank_that_one_run_lacks_is_reported(tmp_path: Path) -> None:
    a = saved(tmp_path / "a", [reader(0, "x")])
    b = saved(tmp_path / "b", [reader(0, "x")], rank=1)

    comparison = Comparison(a, b)

    assert list(comparison) == []
    assert len(comparison.notes.notes) == 2 and "process" in comparison.notes.notes[1]


def test_a_damaged_run_is_compared_up_to_the_damage(tmp_path: Path) -> None:
    a, b = (saved(tmp_path / run, [reader(0, "x"), reader(1, run)]) for run in "ab")
    (file,) = b.path.glob("launches-*")
    file.write_bytes(file.read_bytes()[:-8] + b"\0" * 8)

    comparison = Comparison(a, b)

    assert (list(comparison), comparison.notes.complete) == ([], False)
    assert "later launches are not compared" in comparison.notes.notes[0]


def test_the_launch_that_wrote_an_input_is_known_after_many_equal_launches(tmp_path: Path) -> None:
    a, b = store.Run(write(tmp_path / "a", 1500, 1)), store.Run(write(tmp_path / "b", 1500, 2, 1200))
    (divergence,) = Comparison(a, b)

    read = divergence.pair.launch.args[0].storage
    wrote = [one.index for one in a.launches() if read in {one.args[6].storage, one.args[7].storage}]
    before = [index for index in wrote if index < 1200]
    assert (kind_of(divergence), divergence.pair.launch.index, argument_of(divergence)) == (
        "input",
        1200,
        "in_ptr0",
    )
    assert (divergence.cause.writer.a, divergence.cause.runs) == (before[-1], "ab")
