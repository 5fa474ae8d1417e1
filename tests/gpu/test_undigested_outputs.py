"""On a GPU: a tensor that a launch overwrites as a whole is not digested before it, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from handmade.records import INFO
from torch import nn

from tracing import store
from tracing.analyze.compare.divergence_kinds import InputDiffers, argument_of
from tracing.analyze.compare.first_divergence import Comparison
from tracing.launch.whole_writes import WholeWrites
from tracing.model import Outcome
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.views import dense

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
STEPS = 3  # the first launch of an autotuned kernel digests every tensor


class Block(nn.Module):
    """Layer norms, a wide layer with GELU and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(65), nn.Linear(65, 260), nn.GELU(), nn.Linear(260, 65), nn.LayerNorm(65)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.layers(x)).softmax(-1)


def training_step(scale: float = 1.0) -> Callable[[], None]:
    torch.manual_seed(0)
    block = Block().cuda()
    compiled, x = torch.compile(block), scale * torch.randn(128, 65, device="cuda")

    def step() -> None:
        compiled(x).square().sum().backward()
        block.zero_grad(set_to_none=True)

    step()
    return step


def recorded(runs: Path, step: Callable[[], None]) -> store.Run:
    with LaunchRecorder(store.create(runs, INFO), operators="writers") as recorder:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    recorder.writer.append(Outcome("ended", "exit status 0"))
    return store.Run(recorder.writer.path)


def test_outputs_of_a_compiled_block_are_not_digested_before(tmp_path: Path) -> None:
    run = recorded(tmp_path, training_step())

    outputs = [arg for one in run.launches() for arg in one.args if arg.tensor and arg.declared == "out"]
    undigested = [arg for arg in outputs if arg.before is None]
    print(f"{len(undigested)} of {len(outputs)} outputs are not digested before the launch")
    assert len(undigested) > len(outputs) / 2
    assert all(arg.after is not None and arg.tensor and dense(arg.tensor) for arg in undigested)
    inputs = [arg for one in run.launches() for arg in one.args if arg.reads]
    assert all(arg.before is not None for arg in inputs)


def test_two_recordings_are_equal_also_of_other_garbage_and_of_all_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = training_step()
    a = recorded(tmp_path / "a", step)
    garbage = torch.full((1 << 24,), float("nan"), device="cuda")
    del garbage
    b = recorded(tmp_path / "b", step)
    monkeypatch.setattr(WholeWrites, "of", lambda *args: set())
    everything = recorded(tmp_path / "everything", step)

    for other in (b, everything):
        comparison = Comparison(a, other)
        assert list(comparison) == []
        assert comparison.notes.complete


def test_a_difference_in_what_a_kernel_reads_is_reported(tmp_path: Path) -> None:
    a, b = (recorded(tmp_path / str(scale), training_step(scale)) for scale in (1.0, 2.0))

    first = next(iter(Comparison(a, b)))
    assert isinstance(first, InputDiffers)
    assert first.pair.launch.index == 0
    assert str(argument_of(first)).startswith("in_ptr")
