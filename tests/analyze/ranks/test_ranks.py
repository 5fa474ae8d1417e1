"""The first rank of a job that departs from the others: on hand-built launches and in jobs under torchrun."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from commands import DATA, tracing
from handmade.jobs import ALL_REDUCE, REDUCE_SCATTER, job
from handmade.records import META, arg, launch
from handmade.runs import Operators

from tracing import store
from tracing.analyze.ranks.rank_divergence import RankDivergence
from tracing.analyze.ranks.ranks import RankComparison
from tracing.model import Access, CallSite, KernelLaunch, OperatorCall, OperatorSignature, Record
from tracing.report.ranks import divergence_text
from tracing.report.text import Line


def divergences(run: store.Run) -> list[RankDivergence]:
    return list(RankComparison(run))


def own(index: int, rank: int, **options: int) -> KernelLaunch:
    """A launch on each rank's own data."""
    return launch(index, arg("x", "in", f"x{rank}"), arg("y", "out", "old", f"y{rank}"), **options)


def alike(index: int, left: str = "y", name: str = "triton_poi_fused_mul_0") -> KernelLaunch:
    return launch(index, arg("x", "in", "x"), arg("y", "out", "old", left), name=name)


def unlike_before(rank: int, left: str) -> KernelLaunch:
    """A launch on equal data whose output held other bits before on each rank."""
    return launch(0, arg("x", "in", "x"), arg("y", "out", f"old {rank}", left))


def accessed(read: str, written: str) -> list[Access]:
    return [Access(0, {0: read}, {1: written}, partly=(1,))]


def verdict(run: store.Run) -> tuple[int, str]:
    done = tracing("ranks", str(run.path), runs=run.path.parent)
    return done.returncode, done.stdout


def reader(writer: str, read: str) -> KernelLaunch:
    return launch(0, arg("x", "in", read, writer=writer), arg("y", "out", "old", f"of {read}"))


def test_ranks_that_compute_on_their_own_data_go_together(tmp_path: Path) -> None:
    comparison = RankComparison(job(tmp_path, *([own(0, rank)] for rank in range(3))))

    assert list(comparison) == []
    assert (comparison.launches, comparison.same_inputs, comparison.notes) == (1, 0, [])


def test_a_rank_with_a_different_grid_departs_at_that_launch(tmp_path: Path) -> None:
    (divergence,) = divergences(job(tmp_path, [own(0, 0)], [own(0, 1)], [own(0, 2, grid=2)]))

    assert (divergence.kind, divergence.diverged) == ("launch", (2,))
    assert divergence.groups == (((0, 1), "grid=(1, 1, 1)"), ((2,), "grid=(2, 1, 1)"))


def test_the_first_rank_can_be_the_one_that_departs(tmp_path: Path) -> None:
    (divergence,) = divergences(job(tmp_path, [own(0, 0, num_warps=8)], [own(0, 1)], [own(0, 2)]))

    assert divergence.diverged == (0,)


def test_two_ranks_cannot_decide_which_one_departed(tmp_path: Path) -> None:
    (divergence,) = divergences(job(tmp_path, [own(0, 0)], [own(0, 1, grid=2)]))

    assert divergence.diverged == ()


def test_a_launch_that_one_rank_lacks_is_one_divergence_and_the_rest_goes_on(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    whole = [alike(i, name=name) for i, name in enumerate(names)]
    lacking = [alike(i, name=name) for i, name in enumerate(names[:1] + names[2:])]
    comparison = RankComparison(job(tmp_path, whole, whole, lacking))

    (divergence,) = comparison
    assert (divergence.kind, divergence.diverged, divergence.event.name) == ("missing", (2,), "b")
    assert (divergence.before[2], comparison.launches) == (("launch #0 a",), 6)


def test_launches_that_one_rank_has_more_are_one_divergence(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e"]
    whole = [alike(i, name=name) for i, name in enumerate(names)]
    more = [alike(i, name=name) for i, name in enumerate(["a", "x", "x", *names[1:]])]

    (divergence,) = divergences(job(tmp_path, whole, more, whole))
    assert (divergence.kind, divergence.diverged, divergence.event.name, divergence.count) == (
        "added",
        (1,),
        "x",
        2,
    )


def test_a_rank_departs_at_a_launch_with_equal_inputs_and_different_results(tmp_path: Path) -> None:
    (divergence,) = divergences(job(tmp_path, [alike(0)], [alike(0)], [alike(0, "z")]))

    assert (divergence.kind, divergence.diverged, divergence.argument) == ("output", (2,), "y")


@pytest.mark.parametrize(
    ("name", "random", "diverged"),
    [("aten::mm", False, [(2,)]), ("aten::bernoulli", True, []), ("mine::of_this_rank", False, [])],
)
def test_an_operator_that_reads_equal_bits_must_leave_all_ranks_alike(
    name: str, random: bool, diverged: list[tuple[int, ...]], tmp_path: Path
) -> None:
    def called(rank: int, left: str) -> list[Record]:
        own = Operators().call(1, "aten::sin", [3], [4], bits=(f"x{rank}", f"of x{rank}"))
        return own.call(1, name, [1], [2], bits=("x", left), random=random).records

    records = [called(rank, left) for rank, left in enumerate(("y", "y", "z"))]
    comparison = RankComparison(job(tmp_path, *([alike(0)] for _ in range(3)), records=records))

    divergences = list(comparison)
    assert [(one.kind, one.event.name, one.diverged) for one in divergences] == [
        ("operator", name, ranks) for ranks in diverged
    ]
    assert comparison.same_operators == len(diverged)


def test_the_ranks_agree_also_in_operators_on_equal_data(tmp_path: Path) -> None:
    records = [Operators().call(1, "aten::mm", [1], [2], bits=("x", "y")).records for _ in range(2)]
    run = job(tmp_path, [alike(0)], [alike(0)], records=records)

    assert verdict(run)[0] == 0
    assert "the ranks agree: 1 launch on equal data, 1 operator on equal data" in verdict(run)[1]


@pytest.mark.parametrize(
    ("name", "dtype", "counted"),
    [
        ("aten::mul_.Tensor", "float32", True),
        ("aten::isfinite", "bool", False),
        (ALL_REDUCE, "float32", False),
    ],
)
def test_an_operator_that_only_one_rank_calls_is_said(
    name: str, dtype: str, counted: bool, tmp_path: Path
) -> None:
    line, of_both = CallSite(0, "/train.py", 12, "step"), CallSite(1, "/train.py", 14, "step")
    meta = msgspec.structs.replace(META, dtype=dtype)
    calls = Operators().call(1, name, [1], [1], site=0, meta=meta).call(1, "aten::mm", [1], [2], site=1)
    other = [
        msgspec.structs.replace(of_both, id=0),
        *Operators().call(1, "aten::mm", [1], [2], site=0).records,
    ]
    records = [other, [line, of_both, *calls.records]]
    comparison = RankComparison(job(tmp_path, [alike(0)], [alike(0)], records=records))

    assert list(comparison) == []
    said = f"operators that ranks call unequally often, as {name} at {line}: 0 times on rank 0, 1 on rank 1"
    assert comparison.notes == ([said] if counted else [])
    assert comparison.whole is not counted


def test_an_all_reduce_must_leave_all_ranks_alike(tmp_path: Path) -> None:
    landmarks = [[(1, ALL_REDUCE, "sum")], [(1, ALL_REDUCE, "other")], [(1, ALL_REDUCE, "sum")]]
    (divergence,) = divergences(job(tmp_path, *([own(0, rank)] for rank in range(3)), landmarks=landmarks))

    assert (divergence.kind, divergence.diverged, str(divergence.event)) == (
        "collective",
        (1,),
        f"{ALL_REDUCE} #0, before launch #1",
    )
    assert divergence.before[1] == ("launch #0 triton_poi_fused_mul_0",)


def test_a_reduce_scatter_leaves_each_rank_with_its_own(tmp_path: Path) -> None:
    landmarks = [[(1, REDUCE_SCATTER, f"part {rank}")] for rank in range(3)]
    comparison = RankComparison(job(tmp_path, *([own(0, rank)] for rank in range(3)), landmarks=landmarks))

    assert list(comparison) == []
    assert (comparison.collectives, comparison.other_collectives) == (0, 1)


@pytest.mark.parametrize(
    ("writers", "read"),
    [
        ((ALL_REDUCE, ALL_REDUCE, ALL_REDUCE), ("sum", "sum", "other")),  # by nobody that torch knows
        ((ALL_REDUCE, ALL_REDUCE, "aten::add_"), ("sum", "sum", "other")),
    ],
)
def test_an_all_reduced_tensor_that_one_rank_reads_with_other_bits_was_altered(
    writers: Sequence[str], read: Sequence[str], tmp_path: Path
) -> None:
    launches = [[reader(*one)] for one in zip(writers, read, strict=True)]
    (divergence,) = divergences(job(tmp_path, *launches, landmarks=[[(0, ALL_REDUCE, "sum")]] * 3))

    assert (divergence.kind, divergence.diverged, divergence.argument) == (
        "altered",
        (2,),
        f"x, which {ALL_REDUCE} left",
    )


def test_results_of_a_reduction_over_some_ranks_may_differ_from_the_others(tmp_path: Path) -> None:
    launches = [[reader(ALL_REDUCE, word)] for word in ("sum", "sum", "other")]
    run = job(tmp_path, *launches, landmarks=[[(0, ALL_REDUCE, "sum")]] * 3, group=(0, 1))

    assert divergences(run) == []


def test_a_parameter_that_was_alike_before_the_first_update_stays_alike(tmp_path: Path) -> None:
    steps = [("w", "v"), ("w", "v"), ("w", "v, otherwise")]
    landmarks = [[(1, "before SGD.step", a), (1, "SGD.step", b)] for a, b in steps]
    (divergence,) = divergences(job(tmp_path, *([own(0, rank)] for rank in range(3)), landmarks=landmarks))

    assert (divergence.kind, divergence.diverged, divergence.argument) == ("update", (2,), "parameter 0")


def test_a_parameter_of_each_ranks_own_is_not_compared(tmp_path: Path) -> None:
    landmarks = [[(1, "before SGD.step", f"w{rank}"), (1, "SGD.step", f"v{rank}")] for rank in range(3)]
    comparison = RankComparison(job(tmp_path, *([own(0, rank)] for rank in range(3)), landmarks=landmarks))

    assert list(comparison) == []
    assert (comparison.updates, len(comparison.own)) == (1, 1)


def test_a_rank_that_recorded_nothing_is_reported(tmp_path: Path) -> None:
    comparison = RankComparison(job(tmp_path, [own(0, 0)], [own(0, 1)], world_size=3))

    assert list(comparison) == []
    assert comparison.notes == ["rank 2 of 3 recorded nothing"]


def test_a_run_of_one_rank_has_none_to_compare(tmp_path: Path) -> None:
    run = job(tmp_path, [own(0, 0)])
    done = tracing("ranks", str(run.path), runs=tmp_path)

    assert done.returncode == 2
    assert "has 1 rank that recorded launches or landmarks; at least two are needed" in done.stderr


# ---- exact accesses


def test_a_result_in_memory_that_held_other_bits_proves_nothing_by_digests(tmp_path: Path) -> None:
    run = job(tmp_path, [unlike_before(0, "y")], [unlike_before(1, "z")])
    comparison = RankComparison(run)

    assert list(comparison) == []
    assert (comparison.unproven, comparison.whole) == (1, False)


def test_a_launch_that_was_seen_to_write_other_bits_is_a_divergence(tmp_path: Path) -> None:
    records = [accessed("x", "w"), accessed("x", "v")]
    run = job(tmp_path, [unlike_before(0, "y")], [unlike_before(1, "z")], records=records)
    (divergence,) = divergences(run)

    assert (divergence.kind, divergence.argument) == ("output", "y")


def test_a_launch_that_was_seen_to_write_equal_bits_into_unlike_memory_agrees(tmp_path: Path) -> None:
    records = [accessed("x", "w"), accessed("x", "w")]
    run = job(tmp_path, [unlike_before(0, "y")], [unlike_before(1, "z")], records=records)

    assert verdict(run)[0] == 0


def test_elements_that_a_launch_does_not_read_may_differ_on_each_rank(tmp_path: Path) -> None:
    launches = [[launch(0, arg("x", "in", f"x{n}"), arg("y", "out", "old", f"y{n}"))] for n in range(2)]
    run = job(tmp_path, *launches, records=[accessed("r", "w"), accessed("r", "v")])
    (divergence,) = divergences(run)

    assert divergence.kind == "output"


# ---- code


def with_code(run: store.Run, source: str, hashed: str) -> KernelLaunch:
    one = alike(0)
    code = store.RunWriter(run.path).blob(source)
    return msgspec.structs.replace(one, kernel=msgspec.structs.replace(one.kernel, hash=hashed, module=code))


def test_a_rank_whose_kernel_has_another_constant_diverges_whatever_it_reads(tmp_path: Path) -> None:
    blobs = job(tmp_path / "blobs", [alike(0)])
    sources = ["store(x * 0.5)", "store(x * 0.5)", "store(x * 0.25)"]
    launches = [[with_code(blobs, source, f"hash {n}")] for n, source in enumerate(sources)]
    run = job(tmp_path / "run", *launches)
    for blob in (blobs.path / "blobs").iterdir():
        shutil.copy(blob, run.path / "blobs" / blob.name)
    (divergence,) = divergences(run)

    assert (divergence.kind, divergence.diverged) == ("launch", (2,))
    assert divergence.code is not None and "+store(x * 0.25)" in divergence.code.diff


# ---- what agreement covers


def test_an_equal_all_reduce_of_unlike_data_is_no_agreement(tmp_path: Path) -> None:
    landmarks = [[(1, ALL_REDUCE, "sum")]] * 2
    status, printed = verdict(job(tmp_path, [own(0, 0)], [own(0, 1)], landmarks=landmarks))

    assert status == 2
    assert "nothing differs in what could be compared (0 of 1 launch, 1 of 1 collective)" in printed
    assert "agree" not in printed


def test_equal_updates_of_parameters_are_agreement_although_each_rank_has_its_own_batch(
    tmp_path: Path,
) -> None:
    landmarks = [[(1, "before SGD.step", "w"), (1, ALL_REDUCE, "sum"), (1, "SGD.step", "v")]] * 2
    status, printed = verdict(job(tmp_path, [own(0, 0)], [own(0, 1)], landmarks=landmarks))

    assert status == 0
    assert "the ranks agree: 1 collective, 1 update" in printed


def test_parameters_that_differed_from_the_start_are_no_agreement(tmp_path: Path) -> None:
    landmarks = [[(1, "before SGD.step", f"w{n}"), (1, "SGD.step", f"v{n}")] for n in range(2)]
    status, printed = verdict(job(tmp_path, [alike(0)], [alike(0)], landmarks=landmarks))

    assert status == 2
    assert "not compared: 1 parameter that differed before the first update: parameter 0" in printed
    assert "    next      " not in printed  # the job was recorded with the operators that write parameters


def test_an_input_that_was_equal_on_all_ranks_and_no_longer_is_leaves_the_verdict_open(
    tmp_path: Path,
) -> None:
    ranks = [[alike(0), own(1, n), alike(2, name="other")] for n in range(2)]
    status, printed = verdict(job(tmp_path, *ranks))

    assert status == 2
    assert "x of triton_poi_fused_mul_0: equal on all ranks at launch #0, not at #1" in printed


def test_a_kernel_that_only_fills_memory_compares_nothing_that_a_rank_computed(tmp_path: Path) -> None:
    fill = launch(0, arg("y", "out", "old", "zeros"))

    assert verdict(job(tmp_path, [fill], [fill]))[0] == 2


def test_launches_without_digests_are_no_agreement(tmp_path: Path) -> None:
    bare = msgspec.structs.replace(alike(0, name="bare"), finished=False)
    status, printed = verdict(job(tmp_path, [alike(0), bare], [alike(0), bare]))

    assert status == 2
    assert "results of 1 launch that have no digests of all that they read and wrote" in printed


# ---- operators of an update


def called(launch: int, *arguments: str) -> list[Record]:
    records: list[Record] = []
    for number, text in enumerate(arguments):
        records.append(OperatorSignature(number, "aten::addcdiv_", text, (META,), (META,)))
        records.append(OperatorCall(number, launch, number, (0, 0)))
    return records


def updated(tmp_path: Path, *records: list[Record]) -> RankDivergence:
    landmarks = [[(1, "before Adam.step", "w"), (1, "Adam.step", f"v{n}")] for n in range(2)]
    (divergence,) = divergences(job(tmp_path, [own(0, 0)], [own(0, 1)], landmarks=landmarks, records=records))
    return divergence


def test_an_update_names_the_operators_with_another_scalar(tmp_path: Path) -> None:
    divergence = updated(tmp_path, called(1, "value=-0.1"), called(1, "value=-0.2"))

    (call,) = divergence.calls
    assert (call.name, call.by_rank) == ("aten::addcdiv_", {0: "value=-0.1", 1: "value=-0.2"})
    assert any("(value=-0.1) on rank 0, (value=-0.2) on rank 1" in str(one) for one in text_of(divergence))


def test_operators_before_an_earlier_launch_are_not_of_the_update(tmp_path: Path) -> None:
    assert updated(tmp_path, called(0, "value=-0.1"), called(0, "value=-0.2")).calls == ()


def test_operators_on_the_device_of_each_rank_are_called_alike(tmp_path: Path) -> None:
    on = [called(1, f"device=device(type='cuda', index={n}), value=1") for n in range(2)]

    assert updated(tmp_path, *on).calls == ()


def text_of(divergence: RankDivergence) -> list[Line]:
    return list(divergence_text(divergence, first=True))


# ---- jobs


def trained(runs: Path, ranks: int, option: str) -> str:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    case = f"{DATA / 'training.py'}:{option}"
    command = ["tracing", "run", case, "--rank-aware", "--no-passes", "--runs", str(runs)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launcher, "-m", *command], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0 or "=true" in option, done.stderr
    return str(store.recorded(runs)[0])


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    runs = tmp_path_factory.mktemp("faulty")
    path = trained(runs, 4, "faults=true")
    return tracing("ranks", path, runs=runs).stdout, Path(path)


@pytest.mark.soak
def test_a_rank_with_a_different_winner_departs_first(faulty: tuple[str, Path]) -> None:
    first = faulty[0].split("✗")[1]

    assert "first divergence: rank 1 diverged, at launch #0 scale" in first
    assert "ranks 0, 2-3 grid=(2, 1, 1), BLOCK=16" in first


def test_the_first_divergence_ends_with_the_commands_for_its_kernel(faulty: tuple[str, Path]) -> None:
    assert "next      torchrun --nproc-per-node=4 -m tracing run" in faulty[0].split("✗")[1]
    assert re.search(
        r"tracing repro latest .*--launch 0 --kernel [0-9a-f]{12} --rank 0$", faulty[0], re.MULTILINE
    )


def test_its_winner_is_marked_among_those_of_the_ranks(faulty: tuple[str, Path]) -> None:
    done = tracing("winners", str(faulty[1]), runs=faulty[1].parent)

    assert done.returncode == 1
    assert "✗ rank 1: BLOCK=32" in done.stdout
    assert "1 choice of configurations on ranks 0-3: 1 differ" in done.stdout


def test_a_rank_departs_where_a_collectives_result_was_altered(
    faulty: tuple[str, Path],
) -> None:
    assert "rank 2 diverged, at launch #3 halve, total_ptr, which c10d::allreduce_ left" in faulty[0]
    assert (
        "rank 2 before it: SGD.step #0, before launch #2; launch #2 scale; c10d::allreduce_ #0" in faulty[0]
    )


def test_a_rank_without_an_optimizer_update_departs_at_the_update(faulty: tuple[str, Path]) -> None:
    assert "rank 3 diverged, at SGD.step #1, before launch #4" in faulty[0]


@pytest.mark.soak
def test_ranks_that_never_depart_are_reported_with_what_was_not_compared(tmp_path: Path) -> None:
    done = tracing("ranks", trained(tmp_path, 2, "configs=2"), runs=tmp_path)

    assert done.returncode == 0
    assert "ranks 0-1: 4 launches, 2 collectives, 2 updates in common" in done.stdout
    assert "results of 2 launches that read each rank's own data" in done.stdout
    assert "the ranks agree" in done.stdout
