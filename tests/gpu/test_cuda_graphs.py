"""On a GPU: the launches inside of CUDA graphs are recorded in each replay, with their digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from handmade.records import INFO
from recorded.both_forms import operators
from test_launches import added
from torch import nn

import tracing
from tracing import store
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.model import KeptTensor, KernelLaunch, NotCovered, OperatorTensor, StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recorder(runs: Path, **options: Any) -> LaunchRecorder:
    return LaunchRecorder(store.create(runs, INFO), **options)


def launches(recorder: LaunchRecorder) -> list[KernelLaunch]:
    return list(store.Run(recorder.writer.path).launches())


def gaps(recorder: LaunchRecorder) -> set[str]:
    return {gap.what for gap in store.Run(recorder.writer.path).records(NotCovered)}


def digests(launch: KernelLaunch) -> tuple[object, ...]:
    """The kernel, and the bits that it read and left; not what lay in its outputs before."""
    read = tuple(arg.before.bits for arg in launch.args if arg.reads and arg.before)
    left = tuple(arg.after.bits for arg in launch.args if arg.writes and arg.after)
    return launch.kernel_name, read, left


def written_by(recorder: LaunchRecorder) -> list[list[str | None]]:
    """The operators outside of Triton that last wrote the arguments of each launch."""
    return [[arg.writer for arg in launch.args] for launch in launches(recorder)]


def digested(recorder: LaunchRecorder) -> list[tuple[str, tuple[object, ...], tuple[object, ...]]]:
    """The operators that have digests: the name, and the bits that it read and wrote."""
    return [
        (one.name, tuple(bits(one.reads)), tuple(bits(one.writes)))
        for one in operators(store.Run(recorder.writer.path))
        if any(bits(one.writes))
    ]


def bits(tensors: Sequence[OperatorTensor]) -> list[str | None]:
    return [tensor.digest.bits if tensor.digest else None for tensor in tensors]


def captured(function: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def test_each_replay_has_the_launches_and_digests_of_a_call(tmp_path: Path) -> None:
    x = torch.rand(1000, device="cuda")

    def work() -> torch.Tensor:
        return added(added(x) @ torch.ones(1000, 1, device="cuda") + added(x))

    work()
    with recorder(tmp_path / "graph") as graphed:
        graph = captured(work)
        for step in range(3):
            x.fill_(step)
            graph.replay()
    with recorder(tmp_path / "eager") as eager:
        for step in range(3):
            x.fill_(step)
            work()

    assert [*map(digests, launches(graphed))] == [*map(digests, launches(eager))]
    assert len(launches(graphed)) == 9
    assert written_by(graphed) == written_by(eager)
    assert gaps(graphed) == set()


@pytest.mark.parametrize("of_launches", ["all", "none"])
def test_each_replay_has_the_digests_of_its_operators(of_launches: Any, tmp_path: Path) -> None:
    x, weight = torch.rand(64, 64, device="cuda"), torch.rand(64, 64, device="cuda")
    total = torch.zeros(64, device="cuda")

    def work() -> None:
        y = added(torch.mm(x, weight).t().conj() * 0.5)
        total.add_(torch.nn.functional.softmax(y, dim=-1).sum(0))

    with recorder(tmp_path / "graph", digests=of_launches, operators="digests") as graphed:
        work()  # loads the digest kernels of its layouts
        total.zero_()
        graph = captured(work)
        for step in range(3):
            x.fill_(step)
            graph.replay()
    total.zero_()
    with recorder(tmp_path / "eager", digests=of_launches, operators="digests") as eager:
        work()
        total.zero_()
        for step in range(3):
            x.fill_(step)
            work()

    names = ["aten::fill_.Scalar", "aten::mm", "aten::mul.Tensor", "aten::_softmax", "aten::sum.dim_IntList"]
    replayed, called = digested(graphed)[-18:], digested(eager)[-18:]
    assert [name for name, *_ in called] == [*names, "aten::add_.Tensor"] * 3
    assert replayed == called
    assert gaps(graphed) == set()


def test_replays_in_steps_that_are_not_written_leave_no_digests_of_operators(tmp_path: Path) -> None:
    x = torch.rand(64, 64, device="cuda")
    torch.mm(x, x)
    with recorder(tmp_path, operators="digests", steps=StepSelection(start=2, stop=3)) as recording:
        graph = captured(lambda: torch.mm(x, x))
        for value in range(4):
            x.fill_(value)
            graph.replay()
            tracing.step()
    with recorder(tmp_path / "eager", operators="digests") as eager:
        torch.mm(x.fill_(2), x)

    assert digested(recording)[-1] == digested(eager)[-1]
    assert [name for name, *_ in digested(recording)].count("aten::mm") == 1


def test_the_bits_of_host_memory_that_a_graph_reads_later_are_not_covered(tmp_path: Path) -> None:
    x, host = torch.zeros(8, device="cuda"), torch.ones(8).pin_memory()
    with recorder(tmp_path, operators="digests") as recording:
        graph = captured(lambda: x.copy_(host, non_blocking=True))
        host.fill_(7)
        graph.replay()

    name, read, (written,) = digested(recording)[-1]
    assert (name, read, bool(written)) == ("aten::copy_", (None,), True)
    assert any("host" in gap for gap in gaps(recording))


def test_the_first_operator_that_writes_a_nan_in_a_replay_is_found(tmp_path: Path) -> None:
    x = torch.ones(64, 64, device="cuda")

    def work() -> torch.Tensor:
        return torch.mm(torch.mm(x, x).log(), x)

    work()
    with recorder(tmp_path, operators="digests") as recording:
        graph = captured(work)
        graph.replay()
        x[0] = -1
        graph.replay()

    answer = first_nonfinite(store.Run(recording.writer.path))
    assert answer.origin is not None
    assert answer.origin.event.name == "aten::log"


@pytest.mark.parametrize("digested", ["all", "declared", "none"])
def test_nothing_has_to_run_before_the_capture(digested: Any, tmp_path: Path) -> None:
    x = torch.rand(3000, device="cuda")
    added(x)  # its own module is loaded; the recorder knows nothing of it
    with recorder(tmp_path, digests=digested) as recording:
        graph = captured(lambda: added(x))
        graph.replay()
        graph.replay()

    assert [launch.kernel_name for launch in launches(recording)] == ["add_kernel"] * 2
    assert gaps(recording) == set()
    assert all((launch.args[0].before is None) == (digested == "none") for launch in launches(recording))


def test_replays_on_several_streams_do_not_mix_their_digests(tmp_path: Path) -> None:
    x = torch.rand(1 << 22, device="cuda")
    added(x)
    with recorder(tmp_path) as recording:
        graph = captured(lambda: added(x))
        for _ in range(20):
            with torch.cuda.stream(torch.cuda.Stream()):
                graph.replay()

    bits = {digests(launch) for launch in launches(recording)}
    assert len(launches(recording)) == 20
    assert len(bits) == 1


def test_a_graph_outlives_its_recording_and_a_deleted_one_leaves_its_digests(tmp_path: Path) -> None:
    x = torch.rand(1000, device="cuda")
    added(x)
    outputs: list[torch.Tensor] = []
    with recorder(tmp_path / "a") as first:
        graph = captured(lambda: outputs.append(added(x)))
        graph.replay()
        deleted = captured(lambda: added(x))
        deleted.replay()
        del deleted
    with recorder(tmp_path / "b") as second:
        x.fill_(7)
        graph.replay()

    assert torch.equal(outputs[0], x + 1)
    assert len(launches(first)) == 2
    assert all(launch.args[0].before is not None for launch in launches(first))
    assert launches(second) == []
    assert gaps(second) == {"launches in replays of a CUDA graph that was captured before the recording"}


class Block(nn.Module):
    """Pointwise kernels and matrix products: nothing in them depends on an autotuner's choice."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def trained(mode: str | None, steps: int = 6) -> list[torch.Tensor]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = nn.Sequential(Block(), Block()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    compiled = torch.compile(model, mode=mode)
    losses = []
    for _ in range(steps):
        loss = compiled(torch.randn(32, 64, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().clone())
    return losses


def test_training_with_reduce_overhead_is_recorded_as_without_graphs(tmp_path: Path) -> None:
    alone = trained("reduce-overhead")
    with recorder(tmp_path / "graphs") as graphed:
        recorded = trained("reduce-overhead")
    with recorder(tmp_path / "plain") as plain:
        trained(None)

    assert all(map(torch.equal, alone, recorded))
    assert Counter(launch.kernel_name for launch in launches(graphed)) == Counter(
        launch.kernel_name for launch in launches(plain)
    )
    pairs = zip(map(digests, launches(graphed)), map(digests, launches(plain)), strict=True)
    assert [n for n, (a, b) in enumerate(pairs) if a != b] == []
    assert not any("CUDA graph" in gap for gap in gaps(graphed))


def test_inputs_are_kept_outside_of_the_memory_of_graphs(tmp_path: Path) -> None:
    alone = trained("reduce-overhead")
    with recorder(tmp_path, keep=Keep(inputs=True)) as kept:
        recorded = trained("reduce-overhead")

    assert all(map(torch.equal, alone, recorded))
    assert any(store.Run(kept.writer.path).records(KeptTensor))


def test_the_profiler_counts_the_same_launches_in_replays(tmp_path: Path) -> None:
    torch._dynamo.reset()
    model = torch.compile(nn.Sequential(Block(), Block()).cuda(), mode="reduce-overhead")
    x = torch.randn(32, 64, device="cuda")
    with recorder(tmp_path) as recording, torch.no_grad():
        for _ in range(4):
            model(x)
        first = recording.count
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(5):
                model(x)
            torch.cuda.synchronize()

    seen = Counter(launch.kernel_name for launch in launches(recording)[first:])
    counted = Counter({event.key: event.count for event in profile.key_averages() if event.key in seen})
    assert seen == counted
    assert sum(seen.values()) > 0


def test_graphed_callables_are_recorded_forward_and_backward(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Block().cuda()
    compiled = torch.compile(model)
    x = torch.randn(32, 64, device="cuda", requires_grad=True)
    compiled(x).sum().backward()  # compile
    with recorder(tmp_path / "eager") as eager:
        compiled(x).sum().backward()
    with recorder(tmp_path / "graph") as graphed:
        callable_: Any = torch.cuda.make_graphed_callables(compiled, (x,))
        before = graphed.count
        callable_(x).sum().backward()

    names = [launch.kernel_name for launch in launches(eager)]
    assert names
    assert [launch.kernel_name for launch in launches(graphed)[before:]] == names
