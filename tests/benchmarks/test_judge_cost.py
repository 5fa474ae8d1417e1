"""What judging costs, as a ratio to recording: GPT-2 small with 2 layers, and a block of BERT, one step each.

On a GPU of their real sizes; without one smaller, as the interpreter executes the kernels. Everything is
measured in one process, and printed as ratios to the recording without judging.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from gpt2 import GPT2
from torch import nn

from tracing import store
from tracing.judge.run_referee import judge_run
from tracing.model import SCHEMA, RunInfo
from tracing.program.device import Device
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep

Step = Callable[[], None]
ON_A_GPU = torch.cuda.is_available()


class BertBlock(nn.Module):
    """Attention to all tokens, then a feed-forward layer; norms after the sums."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True, dropout=0.0)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


def gpt2(device: str) -> Step:
    width, heads, words, length = (768, 12, 50257, 1024) if ON_A_GPU else (64, 4, 320, 32)
    model = GPT2(2, width, heads, words).to(device)
    text = torch.randint(words, (2, length), device=device)
    compiled = torch.compile(model)
    return lambda: compiled(text, text.roll(1, 1)).backward()


def bert_block(device: str) -> Step:
    width, heads, length = (768, 12, 512) if ON_A_GPU else (64, 4, 32)
    compiled = torch.compile(BertBlock(width, heads).to(device))
    x = torch.randn(2, length, width, device=device)
    return lambda: compiled(x).square().mean().backward()


def seconds(action: Callable[[], Any]) -> float:
    """Of the processors; on a GPU of the clock."""
    clock = time.perf_counter if ON_A_GPU else time.process_time
    started = clock()
    action()
    return clock() - started


def recorded(step: Step, runs: Path, device: Device, keep: Keep | None) -> tuple[float, Path]:
    info = RunInfo(SCHEMA, "judged", "", (), 0, store.now(), device.environment())
    writer = store.create(runs, info)

    def record() -> None:
        with LaunchRecorder(writer, keep=keep):
            step()
            if ON_A_GPU:
                torch.cuda.synchronize()

    with closing(writer):
        return seconds(record), writer.path


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("made", [gpt2, bert_block], ids=["GPT-2 small, 2 layers", "BERT block"])
def test_judging_a_training_step(made: Callable[[str], Step], tmp_path: Path) -> None:
    device = Device("sm_90")
    torch.manual_seed(0)
    with device.active():
        step = made(device.type)
        compiling, path = recorded(step, tmp_path, device, Keep(inputs=True))
        plain, _ = recorded(step, tmp_path, device, None)
        kept, _ = recorded(step, tmp_path, device, Keep(inputs=True))
    run = store.Run(path)
    judged: list[Any] = []
    judging = seconds(lambda: judged.append(judge_run(run, run.processes()[0])))
    launches = judged[0].launches

    print(f"\n{len(launches)} launches, {sum(one.verdict == 'right' for one in launches)} right")
    print(f"a step recorded                   {plain:8.2f} s  1.00")
    print(f"a step recorded, contents kept    {kept:8.2f} s  {kept / plain:.2f}")
    print(f"a first step, compiled and kept   {compiling:8.2f} s  {compiling / plain:.2f}")
    print(f"judging it                        {judging:8.2f} s  {judging / compiling:.2f} of the first step")
    assert {one.verdict for one in launches} <= {"right", "no reference"}
    assert judged[0].findings == ()
