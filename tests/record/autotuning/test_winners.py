"""Autotuner winners: recorded, compared between ranks, frozen, and used without measuring."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch._inductor.config as inductor
from commands import DATA, tracing
from handmade.records import INFO
from handmade.runs import HOST
from torch._inductor import async_compile
from torch._inductor.fx_passes import pad_mm
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.utils import fresh_cache
from triton import Config, JITFunction, autotune
from triton.runtime.autotuner import Autotuner

from tracing import store
from tracing.errors import Problem
from tracing.model import NotCovered, Scalar, Winner
from tracing.program.case import load_case
from tracing.record.autotuning.winners import Winners
from tracing.store.winners import read_winners, write_winners
from tracing.upstream.triton.autotune import restored
from tracing.virtual_gpu import virtual_gpu

CASE = str(DATA / "autotuned.py")


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def took(*frozen: Winner, writer: store.RunWriter | None = None) -> list[Winner]:
    """The winners that the autotuners of the case choose."""
    torch._dynamo.reset()
    with fresh_cache(), inductor.patch(max_autotune_pointwise=True), Winners(writer, frozen) as winners:
        workload = load_case(CASE).build("cpu")
        torch.compile(workload.fn)(*workload.args)
    return winners.chosen


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Winner]:
    """The winners without freezing: "triton" for Triton's autotuner, "inductor" for the reduction."""
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    chosen = took(writer=writer)
    assert list(store.Run(writer.path).records(Winner)) == chosen
    return {one.tuner: one for one in chosen if one.kernel == "double" or "_per_" in one.kernel}


def other(winner: Winner, **changed: Scalar) -> Winner:
    """The same winner with changes to its configuration."""
    return msgspec.structs.replace(winner, config={**winner.config, **changed})


def retaken(tmp_path: Path, frozen: Winner) -> Winner:
    """The winner of the same autotuner while `frozen` is frozen."""
    chosen = took(frozen, writer=store.create(tmp_path, INFO))
    return next(one for one in chosen if one.key == frozen.key)


@pytest.fixture
def benchmarked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The benchmarks that autotuners ran."""
    seen: list[object] = []
    for owner, name in ((Autotuner, "_bench"), (CachingAutotuner, "bench")):
        original = vars(owner)[name]

        def bench(self: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            seen.append(self)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, bench)
    return seen


# ---- recorded


def test_a_winner_has_its_tuning_key_and_its_candidates(tuned: Mapping[str, Winner]) -> None:
    winner = tuned["triton"]

    assert (winner.kernel, winner.how) == ("double", "tuned")
    assert winner.key == ("n=2048", "torch.float32", "torch.float32")
    assert [one["BLOCK"] for one in winner.candidates] == [64, 128, 256]
    assert winner.config == winner.candidates[0]  # the first of equal times


def test_a_winner_has_the_arguments_that_trials_restore_unless_hooks_may_do_so() -> None:
    def kernel(x: Any) -> None: ...

    def of(hook: Any = None, **options: Any) -> tuple[str, ...] | None:
        configs = [Config({"BLOCK": 64}, pre_hook=hook), Config({"BLOCK": 128})]
        return restored(autotune(configs, key=[], **options)(JITFunction(kernel)))

    assert of() == ()
    assert of(reset_to_zero=["x"]) == of(restore_value=["x"]) == ("x",)
    assert of(pre_hook=print) is of(post_hook=print) is of(print) is None


def test_inductors_winner_has_sizes_and_dtypes_as_its_key(tuned: Mapping[str, Winner]) -> None:
    winner = tuned["inductor"]

    assert winner.key[:2] == ("x=16", "r0_=128")
    assert "in_ptr0: *fp32" in winner.key
    assert winner.config in winner.candidates and len(winner.candidates) > 1


def test_a_winner_from_a_cache_is_recorded_as_such(tmp_path: Path) -> None:
    workload, writer = load_case(CASE).build("cpu"), store.create(tmp_path, INFO)
    workload.fn(*workload.args)
    with Winners(writer) as winners:
        workload.fn(*workload.args)

    assert [(one.kernel, one.how) for one in winners.chosen] == [("double", "cached")]


def test_the_source_is_the_same_whatever_was_chosen_and_however_the_kernel_is_called(
    tuned: Mapping[str, Winner], tmp_path: Path
) -> None:
    frozen = tuned["inductor"]
    chosen = retaken(tmp_path, other(frozen, num_warps=8))

    assert (chosen.source, chosen.key) == (frozen.source, frozen.key)


# ---- frozen


def test_frozen_winners_are_used_without_measuring(
    tuned: Mapping[str, Winner], benchmarked: list[object], tmp_path: Path
) -> None:
    frozen = [other(one, num_warps=8) for one in took() if one.tuner == "inductor"]
    frozen.append(other(tuned["triton"], BLOCK=256))
    benchmarked.clear()
    chosen = took(*frozen, writer=store.create(tmp_path, INFO))

    assert benchmarked == []
    assert {one.how for one in chosen} == {"frozen"}
    assert {one.key: one.config for one in chosen} == {one.key: one.config for one in frozen}


def test_neither_coordinate_descent_nor_inductors_cache_overrides_a_frozen_winner(
    tuned: Mapping[str, Winner], benchmarked: list[object], tmp_path: Path
) -> None:
    frozen = other(tuned["inductor"], XBLOCK=4)  # none of the candidates
    refining = {"coordinate_descent_tuning": True, "autotune_local_cache": True}
    with inductor.patch(refining):
        chosen = retaken(tmp_path, frozen)

    assert (chosen.how, chosen.config) == ("frozen", frozen.config)
    assert not any(one.fn.__name__ == chosen.kernel for one in benchmarked)


def test_only_the_frozen_configuration_is_kept_of_a_workers_compilation(tuned: Mapping[str, Winner]) -> None:
    autotuners: list[Any] = []
    with Recorded(autotuners):
        took()
    autotuner = next(one for one in autotuners if "_per_" in one.fn.__name__)
    autotuner.launchers = []  # as after compilation in a worker
    frozen = other(tuned["inductor"], XBLOCK=4)
    with Winners(None, [frozen]):
        autotuner.precompile(reload_kernel=lambda: autotuner)

    assert [launcher.config.kwargs["XBLOCK"] for launcher in autotuner.launchers] == [4]


class Recorded:
    """Collects Inductor's autotuners when they are precompiled, while entered."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def __enter__(self) -> None:
        self.original = CachingAutotuner.precompile

        def precompile(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            self.seen.append(autotuner)
            return self.original(autotuner, *args, **kwargs)

        CachingAutotuner.precompile = precompile

    def __exit__(self, *exception: object) -> None:
        CachingAutotuner.precompile = self.original


def test_workers_receive_frozen_winners_only_while_they_are_frozen(tuned: Mapping[str, Winner]) -> None:
    before = async_compile._worker_compile_triton
    with Winners(None, [tuned["inductor"]]):
        job = async_compile._worker_compile_triton
        assert isinstance(job, functools.partial) and job.args == ((tuned["inductor"],), before)

    assert async_compile._worker_compile_triton is before


def test_a_frozen_winner_that_is_no_candidate_is_ignored_and_reported(
    tuned: Mapping[str, Winner], tmp_path: Path
) -> None:
    writer = store.create(tmp_path, INFO)
    chosen = took(other(tuned["triton"], BLOCK=32), writer=writer)
    (gap,) = store.Run(writer.path).records(NotCovered)

    assert next(one for one in chosen if one.tuner == "triton").how == "tuned"
    assert (
        "the frozen winner of double (n=2048, torch.float32, torch.float32): the kernel's autotuner"
        in gap.what
    )


def test_autotuners_choose_for_themselves_after_freezing(tuned: Mapping[str, Winner]) -> None:
    workload = load_case(CASE).build("cpu")
    frozen = other(tuned["triton"], BLOCK=256)
    autotuner = workload.fn.__globals__["double"]
    with Winners(None, [frozen]):
        workload.fn(*workload.args)
        assert autotuner.best_config.kwargs == {"BLOCK": 256}
    workload.fn(*workload.args)

    assert type(autotuner.cache) is dict
    assert autotuner.best_config.kwargs == {"BLOCK": 64}


# ---- files and commands


def test_a_winners_file_is_read_back_as_written(tuned: Mapping[str, Winner], tmp_path: Path) -> None:
    write_winners(tmp_path / "w.json", HOST, list(tuned.values()))
    read = read_winners(tmp_path / "w.json")

    assert (read.version, read.target) == (1, HOST.target)
    assert [(one.key, one.config) for one in read.winners] == [
        (one.key, one.config) for one in tuned.values()
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("tracing winners", "notes"), "is 'notes', version 1; this reads 'tracing winners', version 1"),
        (('"version": 1', '"version": 2'), "version 2; this reads"),
        (('"winners": [', '"winners": 3, "rest": ['), "is not a winners file: Expected `array`"),
        (("{", ""), "is not a winners file"),
    ],
)
def test_a_file_that_holds_no_winners_is_refused(
    changed: tuple[str, str], message: str, tuned: Mapping[str, Winner], tmp_path: Path
) -> None:
    path = tmp_path / "w.json"
    write_winners(path, HOST, [tuned["triton"]])
    path.write_text(path.read_text().replace(*changed))

    with pytest.raises(Problem) as problem:
        read_winners(path)
    assert message in problem.value.problem


def test_two_configurations_for_one_kernel_are_refused(tuned: Mapping[str, Winner], tmp_path: Path) -> None:
    write_winners(tmp_path / "w.json", HOST, [tuned["triton"], other(tuned["triton"], BLOCK=256)])

    with pytest.raises(Problem, match="has two configurations for double"):
        read_winners(tmp_path / "w.json")


@pytest.mark.soak
def test_a_run_with_a_winners_file_uses_it_and_reports_stale_entries(tmp_path: Path) -> None:
    first = tracing("run", CASE, "--no-passes", runs=tmp_path).stdout.strip()
    assert tracing("winners", first, "--output", str(tmp_path / "w.json"), runs=tmp_path).returncode == 0
    file = read_winners(tmp_path / "w.json")
    triton, *inductor = file.winners
    stale = msgspec.structs.replace(inductor[0], source="of another kernel")
    write_winners(tmp_path / "w.json", HOST, [other(triton, BLOCK=256), stale])
    again = tracing("run", CASE, "--no-passes", "--winners", str(tmp_path / "w.json"), runs=tmp_path)
    compared = tracing("compare", first, again.stdout.strip(), runs=tmp_path)

    assert "winners: 1 choice frozen\n  they were chosen for cuda:90 by Triton 3;" in again.stderr
    assert "  tuned, not in the file: triton_" in again.stderr
    assert "in the file, and not asked for: triton_" in again.stderr
    assert "BLOCK=64\n" in compared.stdout and "BLOCK=256\n" in compared.stdout


def test_ranks_with_different_winners_and_ranks_that_did_not_tune_are_marked(
    tuned: Mapping[str, Winner], tmp_path: Path
) -> None:
    same, unlike = tuned["triton"], other(tuned["triton"], BLOCK=256)
    for rank, chosen in enumerate(([same], [same, tuned["inductor"]], [unlike])):
        writer = store.create(tmp_path, INFO, rank, "job")
        writer.extend(chosen)
    done = tracing("winners", str(writer.path), "--output", str(tmp_path / "w.json"), runs=tmp_path)

    assert done.returncode == 1
    assert "✗ ranks 0-1: BLOCK=64 num_warps=1" in done.stdout and "✗ rank 2: BLOCK=256" in done.stdout
    assert "ranks 0, 2: did not tune it" in done.stdout
    assert read_winners(tmp_path / "w.json").winners[0].config == same.config


def test_a_measured_decision_to_pad_a_product_is_not_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pad_mm, "set_cached_should_pad", lambda key, value: None)
    writer = store.create(tmp_path, INFO)

    with Winners(writer):
        decided = [pad_mm.is_padded_faster("key", *times) for times in ((2.0, 1.0), (1.0, 2.0))]

    assert decided == [True, False]
    uncovered = list(store.Run(writer.path).records(NotCovered))
    assert {one.what for one in uncovered} == {
        "whether Inductor pads the matrices of a product: it measures both"
    }
