"""Which launches of a program, or of a job with several ranks, are recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import DATA, recorded, tracing

from tracing import store
from tracing.errors import Problem
from tracing.model import Selection
from tracing.record.launches.selection import EVERYTHING, NOTHING, of_rank, parse_range, selection_of


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        (Selection(), True),
        (Selection(kernels=("triton_red_*", "triton_poi_*")), True),
        (Selection(kernels=("triton_red_*",)), False),
        (Selection(launches=(3, 4)), True),
        (Selection(launches=(4, 9)), False),
        (Selection(phases=("backward",)), False),
    ],
)
def test_a_launch_is_selected_if_it_meets_every_condition(selection: Selection, wanted: bool) -> None:
    assert selection.wants(3, "triton_poi_fused_mul_0", "forward") == wanted


@pytest.mark.parametrize(("text", "inside"), [("2:4", [2, 3]), (":2", [0, 1]), ("3:", [3, 4])])
def test_a_range_of_launches_is_open_at_either_end(text: str, inside: list[int]) -> None:
    start, stop = parse_range(text)

    assert [i for i in range(5) if start <= i < stop] == inside


@pytest.mark.parametrize("text", ["", "3", "a:b", "-1:2"])
def test_an_invalid_range_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="is not a range of launches"):
        parse_range(text)


def test_a_selection_without_a_launch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(Problem, match="--launches 9:1 selects none"):
        selection_of(None, "9:1", [], None)
    with pytest.raises(Problem, match="--rank 1 selects none: the ranks are 0 to 0"):
        selection_of(None, ":", [], [1])


def test_a_rank_that_is_not_selected_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    chosen = selection_of(None, ":", [], [1])

    assert of_rank(chosen, 0) == NOTHING
    assert of_rank(chosen, 1) is EVERYTHING


@pytest.mark.soak
def test_launches_keep_their_numbers_when_others_are_left_out(tmp_path: Path) -> None:
    run = store.Run(Path(recorded(str(DATA / "seeded.py"), tmp_path, "--launches", "1:")))

    assert run.info.selection == Selection(launches=(1, 1 << 62))
    assert [launch.index for launch in run.launches()] == [1]
    assert all(launch.finished for launch in run.launches())


@pytest.mark.soak
def test_the_ranks_of_a_job_write_one_run(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    command = [*launcher, "tracing", "run", "silu", "--rank-aware", "--runs", str(tmp_path)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, env=env)

    (path,) = store.recorded(tmp_path)
    files = sorted(file.name.split("-")[-2] for file in path.glob("launches-*"))

    assert files == ["0", "1"]
    assert len(list(store.Run(path).launches())) == 2


def test_rank_aware_outside_of_a_job_is_refused(tmp_path: Path) -> None:
    done = tracing("run", "silu", "--rank-aware", runs=tmp_path)

    assert done.returncode == 2
    assert "this process is no rank of a job" in done.stderr
