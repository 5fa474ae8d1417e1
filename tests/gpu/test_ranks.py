"""On several GPUs: ranks that agree over NCCL, and one that departs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from commands import DATA, tracing

from tracing import store
from tracing.model import Landmark

pytestmark = pytest.mark.skipif(
    torch.cuda.device_count() < 2 or not torch.distributed.is_nccl_available(),
    reason="needs two GPUs and NCCL",
)


def trained(runs: Path, option: str) -> store.Run:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    case = f"{DATA / 'training.py'}:{option}"
    command = [*launcher, "tracing", "run", case, "--rank-aware", "--no-passes", "--runs", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0 or "=true" in option, done.stderr
    return store.Run(store.recorded(runs)[0])


def test_equal_ranks_go_together_over_nccl(tmp_path: Path) -> None:
    run = trained(tmp_path, "configs=1")
    done = tracing("ranks", str(run.path), runs=tmp_path)

    assert done.returncode == 0, done.stdout
    assert "ranks 0-1: 4 launches, 2 collectives, 2 updates in common" in done.stdout
    assert {one.ranks for one in run.records(Landmark) if one.kind == "collective"} == {(0, 1)}


def test_a_rank_with_another_configuration_is_reported_over_nccl(tmp_path: Path) -> None:
    run = trained(tmp_path, "configs=1,faults=true")
    done = tracing("ranks", str(run.path), runs=tmp_path)

    assert done.returncode == 1
    assert "which rank diverged cannot be decided, at launch #0 scale" in done.stdout
    assert "BLOCK=16" in done.stdout and "BLOCK=32" in done.stdout
