"""On a GPU: digests of operators outside of Triton are taken in stream order, and are those of the host."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from handmade.records import INFO

from tracing import store
from tracing.digest.host import digest
from tracing.model import NotCovered, OperatorCall, OperatorDigests
from tracing.record.launches.launch_recorder import LaunchRecorder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recorded(runs: Path, program: Callable[[], object]) -> store.Run:
    with LaunchRecorder(store.create(runs, INFO), operators="digests") as recorder:
        program()
    return store.Run(recorder.writer.path)


def digested(run: store.Run) -> list[OperatorDigests]:
    return list(run.records(OperatorDigests))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.rand(300, 200),
        torch.rand(300, 200).bfloat16(),
        torch.rand(20, 30, 40).permute(2, 0, 1),
        torch.rand(100, 64)[:, 1:63],
        torch.arange(1000) - 500,
        torch.randn(50, 7, dtype=torch.complex64).conj(),
        torch.zeros(0, 3),
    ],
    ids=["float32", "bfloat16", "permuted", "rows", "int64", "conj", "empty"],
)
def test_digests_are_those_of_the_host(tensor: torch.Tensor, tmp_path: Path) -> None:
    x = tensor.cuda()
    y = torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")

    (copy,) = digested(recorded(tmp_path, lambda: y.copy_(x)))

    assert copy.before[-1].bits == digest(tensor).bits
    assert copy.after[0].bits == digest(tensor).bits


def test_operators_keep_their_order_on_several_streams(tmp_path: Path) -> None:
    x = torch.rand(1 << 20, device="cuda")
    side = torch.cuda.Stream()

    def program() -> None:
        for _ in range(50):
            x.add_(1)
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x.mul_(0.5)
            torch.cuda.current_stream().wait_stream(side)

    run = recorded(tmp_path, program)
    records = digested(run)

    assert [one.operator for one in records] == list(range(len(records)))
    assert len(records) == 100
    assert all(a.after[0].bits == b.before[0].bits for a, b in pairwise(records))
    assert not list(run.records(NotCovered))


def test_each_replay_of_a_graph_has_the_digests_of_its_operators(tmp_path: Path) -> None:
    x = torch.rand(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()

    def program() -> None:
        with torch.cuda.graph(graph):
            x.add_(1)
        graph.replay()
        graph.replay()

    run = recorded(tmp_path, program)
    called = [operator for process in run.processes(OperatorCall) for operator in run.operators(process)]
    left = [one.writes[0].digest for one in called if one.name == "aten::add_.Tensor"]

    assert len(left) == 2 and all(left)
    assert left[1] is not None and left[1].bits == digest(x).bits
    assert not list(run.records(NotCovered))
