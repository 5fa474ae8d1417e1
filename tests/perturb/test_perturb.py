"""The perturbations of a run: chosen by a seed, and recorded, as are those that could not be made."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import new_run

from tracing.model import Perturbed
from tracing.perturb.autotuner_times import OtherWinners
from tracing.perturb.delays import Delays
from tracing.perturb.perturbation import Perturbation
from tracing.record.repeat import hash_seed
from tracing.store import Run
from tracing.virtual_gpu import virtual_gpu

SITE: Any = None  # a delay does not depend on the kernel


def held_back(delays: Delays, launches: int) -> list[int]:
    """The indices of the launches that waited."""
    waited = []
    for index in range(launches):
        before = delays.counts["launch"]
        delays.before(SITE, (), 0, None)
        waited += [index] * (delays.counts["launch"] - before)
    return waited


def test_a_seed_delays_the_same_launches_each_time_and_another_seed_delays_others() -> None:
    first, again, other = (held_back(Delays(seed), 60) for seed in (1, 1, 2))

    assert first == again != other
    assert 2 < len(first) < 30


def test_a_run_that_is_not_perturbed_delays_no_launch() -> None:
    assert held_back(Delays(None), 200) == []


def perturbed(
    folder: Path, run: int, virtual: bool = True, hash_seed: int | None = 0
) -> dict[str, Perturbed]:
    writer = new_run(folder)
    with Perturbation(run, virtual, 0, writer, hash_seed) as beside, beside:
        pass
    return {one.what: one for one in Run(writer.path).records(Perturbed)}


def test_a_run_records_its_perturbations_and_those_that_could_not_be_made(tmp_path: Path) -> None:
    perturbation = perturbed(tmp_path, 1)

    assert {what: one.how for what, one in perturbation.items()} == {
        "memory": "0xff",
        "programs": "shuffled, seed 1",
        "late stream": "",
        "delays": "0",
    }
    assert perturbation["late stream"].why_not == "the virtual GPU makes one launch after the other"


def test_memory_winners_and_the_hash_seed_are_changed_in_turn(tmp_path: Path) -> None:
    runs = [
        perturbed(tmp_path / str(run), run, hash_seed=hash_seed(run, perturb=True))
        for run in (1, 2, 3, 4, 5, 6, 7, 10)
    ]
    in_turn = [{"memory", "winners", "hash seed"} & run.keys() for run in runs]

    assert in_turn == [*2 * [{"memory"}, {"winners"}, {"hash seed"}], {"memory"}, {"memory"}]
    assert [run["memory"].how for run in runs if "memory" in run] == ["0xff", "0x7b", "0x01", "0xff"]
    assert runs[1]["winners"].why_not == "no kernel was tuned"
    assert runs[2]["hash seed"].how == "3"


def test_a_hash_seed_that_the_user_fixed_is_recorded_as_not_changed(tmp_path: Path) -> None:
    assert perturbed(tmp_path, 3, hash_seed=None)["hash seed"].why_not == "PYTHONHASHSEED is set"


@triton.jit
def total(x, y, n, other, BLOCK: tl.constexpr, HAS_OTHER: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n, other=other) if HAS_OTHER else tl.load(x + at, at < n)
    tl.store(y + tl.program_id(0), tl.sum(value))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32])
def test_what_a_load_without_other_leaves_out_is_perturbed(tmp_path: Path, dtype: torch.dtype) -> None:
    def totals(run: int, has_other: bool) -> list[float]:
        x, y = torch.ones(4, dtype=dtype), torch.zeros(2, dtype=dtype)
        (tmp_path / f"{run}{has_other}").mkdir()
        writer = new_run(tmp_path / f"{run}{has_other}")
        with virtual_gpu(), Perturbation(run, True, 0, writer) as launches, launches:
            total[(2,)](x, y, 3, 0, BLOCK=4, HAS_OTHER=has_other)
        return y.tolist()

    assert totals(0, has_other=False) == totals(0, has_other=True) == totals(1, has_other=True) == [3, 3]
    assert 3 not in totals(1, has_other=False)


BLOCKS = [triton.Config({"BLOCK": block}) for block in (32, 64, 128)]


@triton.autotune(BLOCKS, key=["n"])
@triton.jit
def fill(ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(ptr + offsets, offsets, mask=offsets < n)


def test_another_configuration_wins_while_requested() -> None:
    def chosen(winners: OtherWinners | None) -> int:
        with winners.active() if winners else nullcontext():
            fill[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](torch.empty(100), 100)
            return fill.best_config.kwargs["BLOCK"]

    with virtual_gpu():
        blocks = [
            chosen(None),
            chosen(OtherWinners("slowest", 2)),
            chosen(OtherWinners("random", 4)),
            chosen(None),
        ]

    assert (blocks[0], blocks[1], blocks[3]) == (32, 128, 32)
    assert blocks[2] == chosen_by_chance(4)


def chosen_by_chance(seed: int) -> int:
    times = random.Random(seed)
    return min(BLOCKS, key=lambda config: times.random()).kwargs["BLOCK"]
