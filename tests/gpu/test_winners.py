"""On a GPU: measured and chosen autotuner winners are frozen, and used without measuring."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch._inductor.config as inductor
from commands import DATA, tracing
from handmade.records import INFO
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.utils import fresh_cache
from triton.runtime.autotuner import Autotuner

from tracing import store
from tracing.model import Winner
from tracing.program.case import load_case
from tracing.record.autotuning.winners import Winners

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

CASE = f"{DATA / 'autotuned.py'}:rows=512,columns=8192"
TUNED = {"double", "triton_poi", "triton_red"}


def kinds(winners: list[Winner]) -> set[str]:
    return {one.kernel[:10] for one in winners}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Path]:
    """The runs, the first of them, and the file of what was chosen in it."""
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("run", CASE, runs=runs)
    assert done.returncode == 0, done.stderr
    frozen = tracing("winners", done.stdout.strip(), "--output", str(runs / "w.json"), runs=runs)
    assert frozen.returncode == 0, frozen.stderr
    return runs, done.stdout.strip(), runs / "w.json"


def winners_of(run: str) -> list[Winner]:
    return list(store.Run(Path(run)).records(Winner))


def test_triton_and_inductor_have_chosen_by_measuring(recorded: tuple[Path, str, Path]) -> None:
    winners = winners_of(recorded[1])

    assert kinds(winners) == TUNED
    assert {one.how for one in winners} == {"tuned"}
    assert all(len(one.candidates) > 1 for one in winners)


@pytest.mark.parametrize("refining", ["0", "1"])
def test_a_run_with_the_winners_of_another_is_equal_to_it(
    refining: str, recorded: tuple[Path, str, Path]
) -> None:
    runs, first, file = recorded
    env = {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": refining}  # compiled by Inductor's workers, as above
    again = tracing("run", CASE, "--winners", str(file), runs=runs, **env)
    assert again.returncode == 0, again.stderr
    compared = tracing("compare", first, again.stdout.strip(), runs=runs)

    assert {one.how for one in winners_of(again.stdout.strip())} == {"frozen"}
    assert "not in the file" not in again.stderr and "not asked for" not in again.stderr
    assert compared.returncode == 0, compared.stdout


def launched(frozen: list[Winner], writer: store.RunWriter) -> list[Winner]:
    torch._dynamo.reset()
    with fresh_cache(), inductor.patch(max_autotune_pointwise=True), Winners(writer, frozen) as winners:
        workload = load_case(CASE).build("cuda")
        torch.compile(workload.fn)(*workload.args)
    return winners.chosen


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("settings", [{}, {"coordinate_descent_tuning": True}])
def test_nothing_is_measured_where_everything_is_frozen(
    threads: int,
    settings: Mapping[str, bool],
    recorded: tuple[Path, str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    measured: list[str] = []
    for owner, name in ((Autotuner, "_bench"), (CachingAutotuner, "bench")):
        original = vars(owner)[name]

        def bench(self: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            measured.append(type(self).__name__)
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, bench)
    # of Inductor's, configurations that are none of its candidates
    frozen = [
        msgspec.structs.replace(one, config={**one.config, "num_warps": 16})
        if one.tuner == "inductor"
        else msgspec.structs.replace(one, config=one.candidates[-1])
        for one in winners_of(recorded[1])
    ]
    with inductor.patch({"compile_threads": threads, **settings}):
        chosen = launched(frozen, store.create(tmp_path, INFO))

    assert measured == []
    assert {one.key: one.config for one in chosen} == {one.key: one.config for one in frozen}
    assert {one.how for one in chosen} == {"frozen"}
