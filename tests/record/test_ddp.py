"""A compiled module in DistributedDataParallel compiles while operators are recorded, as without tracing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracing.store import Run

PROGRAM = """
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
width = 512 if "buckets" in sys.argv else 8  # 1 MB a block: a bucket and a graph of its own

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return torch.tanh(self.inner(x)) * self.scale


model = torch.nn.Sequential(*(Block() for _ in range(3))).cuda()
data_parallel = DistributedDataParallel(torch.compile(model), bucket_cap_mb=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = data_parallel(torch.ones(4, width).cuda()).square().mean()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.6f}")
"""


@pytest.mark.soak
@pytest.mark.parametrize("words", [[], ["buckets"]], ids=["one graph", "a graph for each bucket"])
def test_a_compiled_module_in_ddp_is_recorded(words: list[str], tmp_path: Path) -> None:
    (program := tmp_path / "train.py").write_text(PROGRAM)
    (plain := tmp_path / "plain.py").write_text(PROGRAM.replace(".cuda()", ""))
    options = ["-m", "tracing", "run", "--no-passes", "--runs", str(tmp_path / "runs")]

    done = subprocess.run([sys.executable, *options, str(program), *words], capture_output=True, text=True)
    without = subprocess.run([sys.executable, str(plain), *words], capture_output=True, text=True)
    (run,) = map(Run, (tmp_path / "runs").iterdir())

    assert done.returncode == 0, done.stderr
    assert done.stdout == without.stdout
    assert len(list(run.launches())) > 4
