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


SHARDED = """
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(2)]).cuda()
for layer in model:
    layer.compile()
    fully_shard(layer)
fully_shard(model)
loss = model(torch.ones(8, 64, device="cuda")).square().mean()
loss.backward()
print(loss.item())
dist.destroy_process_group()
"""


def test_a_sharded_module_gives_what_it_gives_without_recording(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(SHARDED)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    recording = ["-m", "tracing", "run", "--runs", str(tmp_path / "runs")]
    alone, recorded = (
        subprocess.run([*launcher, *words, str(program)], capture_output=True, text=True, check=False)
        for words in ([], recording)
    )

    assert (alone.returncode, recorded.returncode) == (0, 0), recorded.stderr
    assert recorded.stdout == alone.stdout
    run = store.Run(store.recorded(tmp_path / "runs")[0])
    assert "c10d::_allgather_base_" in {one.name for one in run.records(Landmark)}


def test_a_rank_with_another_configuration_is_reported_over_nccl(tmp_path: Path) -> None:
    run = trained(tmp_path, "configs=1,faults=true")
    done = tracing("ranks", str(run.path), runs=tmp_path)

    assert done.returncode == 1
    assert "which rank diverged cannot be decided, at launch #0 scale" in done.stdout
    assert "BLOCK=16" in done.stdout and "BLOCK=32" in done.stdout
