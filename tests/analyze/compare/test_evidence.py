"""Evidence for a cause is reported if the run holds it, and only then."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from handmade.records import arg, launch
from handmade.runs import saved

from tracing.analyze.compare.cause_kinds import Host, OperatorCause, Uninitialised, Writer
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    InputDiffers,
    LaunchDiffers,
    LaunchPair,
    OneSided,
    OutputDiffers,
    ReadOutside,
)
from tracing.analyze.compare.evidence import evidence, float_atomics
from tracing.analyze.compare.signature_pair import SettingChange
from tracing.analyze.compare.winners import RecordedWinners
from tracing.model import CallSite, OutOfBounds, Record, Winner
from tracing.store import Run, RunWriter

ADD = "  %3 = tt.atomic_rmw fadd, acq_rel, gpu, %o, %2, %true : (!tt.ptr<f32>, f32, i1) -> f32\n"
COUNT = "  %3 = tt.atomic_rmw add, acq_rel, gpu, %o, %2, %true : (!tt.ptr<i32>, i32, i1) -> i32\n"
PLAIN = "  %2 = tt.load %1 : tensor<64x!tt.ptr<f32>>\n  tt.store %4, %2 : tensor<64x!tt.ptr<f32>>\n"
MASKED = "  %2 = tt.load %1, %mask : tensor<64x!tt.ptr<f32>>\n"


class Planted:
    """A run with one launch of a kernel with this TTIR."""

    def __init__(self, folder: Path, ir: str = "", records: Iterable[Record] = ()) -> None:
        self.run = saved(folder, [], records)
        stages = {"ttir": RunWriter(self.run.path).blob(ir)} if ir else {}
        one = launch(0, arg("in_ptr", "in", "x"), arg("out_ptr", "out", "old", "y"))
        self.launch = msgspec.structs.replace(one, kernel=msgspec.structs.replace(one.kernel, stages=stages))
        self.pair = LaunchPair(0, self.launch, self.launch)

    def reported(self, divergence: Divergence) -> str:
        return "\n".join(evidence((self.run, self.run), divergence))


@pytest.mark.parametrize(
    ("ir", "words"),
    [
        (ADD, "adds floats atomically (1 tt.atomic_rmw fadd)"),
        (COUNT, "has 1 atomic operation:"),
        (PLAIN, "no atomic operation"),
    ],
)
def test_evidence_for_a_nondeterministic_kernel_names_its_atomics(
    ir: str, words: str, tmp_path: Path
) -> None:
    planted = Planted(tmp_path, ir)

    assert words in planted.reported(OutputDiffers(planted.pair, 1))


SUM = '  %3 = "tt.reduce"(%2) <{axis = 0 : i32}> ({\n'
OTHER = MASKED.replace("%mask", "%mask, %other")
CACHED = MASKED.replace("%mask", "%mask evictionPolicy = evict_last")


@pytest.mark.parametrize(
    ("ir", "count"),
    [
        (MASKED + SUM, "1 of 1 loads"),
        (CACHED + OTHER + PLAIN + SUM, "1 of 3 loads"),
        (OTHER + SUM, ""),
        (PLAIN + SUM, ""),
        (MASKED, ""),  # each element is of one lane, whose store has the mask, too
    ],
)
def test_evidence_for_a_nondeterministic_kernel_names_loads_that_leave_elements_undefined(
    ir: str, count: str, tmp_path: Path
) -> None:
    planted = Planted(tmp_path, ir)
    words = "have a mask and no `other`: does the result depend on elements that are not loaded?"
    reported = planted.reported(OutputDiffers(planted.pair, 1))

    assert [line for line in reported.splitlines() if words in line] == (
        [f"{count} in the kernel's TTIR {words}"] if count else []
    )


def test_a_result_that_may_be_unwritten_is_not_called_a_race(tmp_path: Path) -> None:
    planted = Planted(tmp_path, ADD)

    assert planted.reported(OutputDiffers(planted.pair, 1, "unwritten")) == ""


def test_evidence_for_a_reader_of_unwritten_memory_names_loads_without_a_mask(tmp_path: Path) -> None:
    planted = Planted(tmp_path, PLAIN + MASKED)
    cause = Uninitialised(Writer(0, 0, "fill", "out_ptr"))

    assert "1 of 2 loads in the kernel's TTIR have no mask" in planted.reported(
        InputDiffers(planted.pair, 0, cause)
    )
    assert planted.reported(InputDiffers(planted.pair, 0, Uninitialised(None, elements=(40, 24)))) == ""


@pytest.mark.parametrize(
    ("cause", "asked"),
    [
        (Host("", None, proven=False), True),  # as of a tensor that torch.load made
        (Host("", None, made=True), True),
        (Host("ab", None), False),  # the host wrote into a tensor that the program had
    ],
)
def test_values_of_the_program_may_come_from_a_file(cause: Host, asked: bool, tmp_path: Path) -> None:
    planted = Planted(tmp_path)

    words = "if they come from a file, as a checkpoint: did both runs read the same file?"
    assert (words in planted.reported(InputDiffers(planted.pair, 0, cause))) is asked


@pytest.mark.parametrize("names", [("aten::rand", "aten::rand"), ("", "aten::bernoulli_")])
def test_a_random_generator_is_named(names: tuple[str, str], tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    cause = OperatorCause(names, ("", ""), "ab", proven=False)

    reported = planted.reported(InputDiffers(planted.pair, 0, cause))

    assert reported == f"{names[0] or names[1]} draws random numbers: do both runs use one seed?"


def test_an_operator_that_draws_nothing_is_no_random_generator(tmp_path: Path) -> None:
    planted = Planted(tmp_path)

    assert (
        planted.reported(
            InputDiffers(planted.pair, 0, OperatorCause(("aten::mm",) * 2, ("", ""), "ab", False))
        )
        == ""
    )


def winner(pair: LaunchPair, outputs: tuple[str, ...], *, tuned: bool = True) -> LaunchDiffers:
    return LaunchDiffers(pair, (SettingChange("BLOCK", "16", "64"),), None, tuned, outputs)


def test_a_different_winner_is_reported_to_add_in_another_order_if_the_kernel_adds(tmp_path: Path) -> None:
    adds, copies = Planted(tmp_path / "adds", ADD), Planted(tmp_path / "copies", PLAIN)

    assert "combines elements (1 tt.atomic_rmw)" in adds.reported(winner(adds.pair, ("out_ptr",)))
    assert "another order of additions is not the reason" in copies.reported(
        winner(copies.pair, ("out_ptr",))
    )


def test_sums_are_not_mentioned_if_results_are_equal_or_the_program_chose_the_configuration(
    tmp_path: Path,
) -> None:
    planted = Planted(tmp_path, ADD)

    assert planted.reported(winner(planted.pair, ())) == ""
    assert planted.reported(winner(planted.pair, ("out_ptr",), tuned=False)) == ""


@pytest.mark.parametrize(("changed", "said"), [(True, False), (False, True)])
def test_an_extra_launch_that_left_its_buffers_unchanged_is_cleared(
    changed: bool, said: bool, tmp_path: Path
) -> None:
    planted = Planted(tmp_path)
    pair = LaunchPair(0, planted.launch, None)

    reported = planted.reported(OneSided(pair, 1, last=False, changed=changed))

    assert ("no later difference follows from it" in reported) is said


def test_accesses_outside_of_an_argument_are_reported_with_index_program_and_line(tmp_path: Path) -> None:
    outside = OutOfBounds(0, "out_ptr", "store", 64, (1, 0, 0), 256, 272, 4, True, "k.py:12")
    elsewhere = msgspec.structs.replace(outside, launch=7)
    planted = Planted(tmp_path, records=[outside, elsewhere])

    pair = LaunchPair(0, planted.launch, planted.launch)
    reported = planted.reported(OutputDiffers(pair, 1, ReadOutside("in_ptr")))

    assert reported.splitlines() == [
        f"in {run}: out of bounds: 4 stores outside of out_ptr, within its storage, first out_ptr[64] "
        "in program (1, 0, 0) (k.py:12)"
        for run in "ab"
    ]


def test_only_floats_that_are_added_atomically_are_counted(tmp_path: Path) -> None:
    planted = Planted(tmp_path, ADD + COUNT + PLAIN)

    assert float_atomics(planted.run, planted.launch) == 1


# ---- winners


def tuned(folder: Path, *configs: dict[str, object], candidates: int = 2, key: tuple[str, ...] = ()) -> Run:
    """A run in which an autotuner of kernel `k` chose the given configurations."""
    tried = tuple({"BLOCK": 16 << n} for n in range(candidates))
    chosen = [Winner("triton", "k", "s", key, one, candidates=tried) for one in configs]  # type: ignore[arg-type]
    return saved(folder, [], chosen)


@pytest.mark.parametrize(
    ("changes", "explained"),
    [
        ([("BLOCK", "16", "64")], True),
        ([("grid", "(1, 2, 3)", "(4, 2, 3)"), ("BLOCK", "16", "64"), ("num_warps", "4", "8")], True),
        ([("grid", "(1, 2, 3)", "(4, 2, 3)")], False),
        ([("BLOCK", "16", "32")], False),
        ([("BLOCK", "16", "64"), ("SCALE", "2", "3")], False),
        ([("kernel", "k", "other")], False),
        ([], False),
    ],
)
def test_a_different_winner_needs_an_autotuner_in_both_runs(
    changes: list[tuple[str, str, str]], explained: bool, tmp_path: Path
) -> None:
    a = tuned(tmp_path / "a", {"BLOCK": 16, "num_warps": 4})
    b = tuned(tmp_path / "b", {"BLOCK": 64, "num_warps": 8})

    assert RecordedWinners(a, b).explain("k", [SettingChange(*one) for one in changes]) is explained


def test_a_configuration_without_an_autotuner_was_chosen_by_the_program(tmp_path: Path) -> None:
    a, b = (tuned(tmp_path / run) for run in "ab")
    only = tuned(tmp_path / "only", {"BLOCK": 64}, candidates=1)
    change = [SettingChange("BLOCK", "16", "64")]

    assert not RecordedWinners(a, b).explain("k", change)
    assert not RecordedWinners(tuned(tmp_path / "of a", {"BLOCK": 16}), b).explain("k", change)
    assert not RecordedWinners(tuned(tmp_path / "two", {"BLOCK": 16}), only).explain("k", change)


def test_winners_of_two_tuning_keys_were_chosen_among_other_candidates(tmp_path: Path) -> None:
    a, same = (tuned(tmp_path / name, {"BLOCK": size}, key=("x=8",)) for name, size in (("a", 16), ("b", 64)))
    other = tuned(tmp_path / "other", {"BLOCK": 64}, key=("x=1024",))
    change = [SettingChange("BLOCK", "16", "64")]

    assert RecordedWinners(a, same).explain("k", change)
    assert not RecordedWinners(a, other).explain("k", change)


def test_a_winner_of_another_kernel_explains_nothing(tmp_path: Path) -> None:
    a, b = tuned(tmp_path / "a", {"BLOCK": 16}), tuned(tmp_path / "b", {"BLOCK": 64})

    assert not RecordedWinners(a, b).explain("other", [SettingChange("BLOCK", "16", "64")])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((31, 32), "only a launches this kernel at k.py:30 in f: b may lack that launch instead"),
        ((30, 31), ""),
        ((41, 42), ""),
    ],
)
def test_a_line_from_which_only_one_run_launches_a_missing_kernel_is_named(
    lines: tuple[int, int], words: str, tmp_path: Path
) -> None:
    sides = []
    for name, numbers in (("a", (30, 31, 32)), ("b", lines)):
        sites = [CallSite(n, "k.py", line, "f") for n, line in enumerate(numbers)]
        launches = [
            msgspec.structs.replace(launch(n, arg("ptr", "in_out", f"x{n}")), site=site)
            for n, site in enumerate(sites)
        ]
        sides.append((saved(tmp_path / name, launches, sites), launches))
    (a, launches), (b, _) = sides

    reported = list(evidence((a, b), OneSided(LaunchPair(0, launches[2], None), 1, last=True, changed=True)))

    assert reported == ([words] if words else [])


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        ("uxxxy", ["launches #1 to #3 of a read and wrote equal bits:", "b may lack another one of them"]),
        ("uxvxy", []),
        ("uvwxy", []),
    ],
)
def test_equal_launches_in_a_row_of_which_any_may_be_missing_are_named(
    bits: str, words: list[str], tmp_path: Path
) -> None:
    launches = [launch(n, arg("ptr", "in_out", one, storage=n)) for n, one in enumerate(bits)]
    a = saved(tmp_path / "a", launches)
    b = saved(tmp_path / "b", [*launches[:3], *launches[4:]])

    reported = evidence((a, b), OneSided(LaunchPair(0, launches[3], None), 1, last=False, changed=True))

    assert list(reported) == words
