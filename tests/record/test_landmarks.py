"""Collectives and parameters as recorded landmarks: the bits of their inputs and of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from handmade.records import INFO

from tracing import store
from tracing.analyze.ranks.rank_events import ranks_of
from tracing.digest.host import digest
from tracing.model import Cut, Landmark, LandmarkDigests, NotCovered
from tracing.model.collectives import is_collective
from tracing.record.launches.launch_recorder import LaunchRecorder


@pytest.fixture(scope="module", autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def recorded(folder: Path, program: Callable[[], Any], **options: Any) -> store.Run:
    writer = store.create(folder, INFO)
    with LaunchRecorder(writer, **options):
        program()
    return store.Run(writer.path)


def sides(run: store.Run) -> list[tuple[int, str, list[str]]]:
    """The recorded digests, in order."""
    lines = run.records(LandmarkDigests)
    return [(line.landmark, line.side, [one.bits for one in line.digests]) for line in lines]


def bits(*tensors: torch.Tensor) -> list[str]:
    return [digest(tensor).bits for tensor in tensors]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_in_place_all_reduce_has_the_bits_before_and_after_it(asynchronous: bool, tmp_path: Path) -> None:
    x = torch.arange(4.0)
    before = bits(x)
    run = recorded(tmp_path, lambda: dist.all_reduce(x, async_op=asynchronous))
    (landmark,) = run.records(Landmark)

    assert (landmark.name, landmark.launch, landmark.ranks) == ("c10d::allreduce_", 0, (0,))
    assert sides(run) == [(0, "inputs", before), (0, "results", bits(x))]


def test_a_collective_without_a_work_handle_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as NCCL issues a synchronous one
    monkeypatch.setattr(dist.Work, "unbox", staticmethod(lambda boxed: None))
    x = torch.arange(4.0)
    run = recorded(tmp_path, lambda: dist.all_reduce(x))

    assert sides(run) == [(0, "inputs", bits(x)), (0, "results", bits(x))]


def test_an_error_of_the_recorder_at_a_collective_leaves_the_program_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(dist.Work, "unbox")
    x = torch.arange(4.0)
    run = recorded(tmp_path, lambda: (dist.all_reduce(x), dist.all_reduce(x)), strict=False)

    (cut,) = run.records(Cut)
    assert "unbox" in cut.error and len([*run.records(Landmark)]) == 1


def test_an_all_gather_has_the_bits_of_its_list_of_outputs(tmp_path: Path) -> None:
    x, gathered = torch.arange(4.0), [torch.empty(4)]
    run = recorded(tmp_path, lambda: dist.all_gather(gathered, x))

    assert sides(run) == [(0, "inputs", bits(x)), (0, "results", bits(*gathered))]


def test_a_functional_collective_ends_where_the_program_waits(tmp_path: Path) -> None:
    x = torch.arange(4.0)

    def program() -> None:
        y = functional.all_reduce(x, "sum", dist.group.WORLD)
        dist.broadcast(x, 0)
        y + 1  # the program waits for the collective here

    run = recorded(tmp_path, program)
    names = [one.name for one in run.records(Landmark)]

    assert names == ["_c10d_functional::all_reduce", "c10d::broadcast_"]
    assert [(number, side) for number, side, _ in sides(run)][-1] == (0, "results")


def test_two_collectives_in_flight_are_distinguished_when_the_program_waits(tmp_path: Path) -> None:
    x, y = torch.zeros(4), torch.ones(4)

    def program() -> None:
        first, second = (functional.all_reduce(one, "sum", dist.group.WORLD) for one in (x, y))
        second + 1, first + 1

    assert sides(recorded(tmp_path, program))[2:] == [(1, "results", bits(y)), (0, "results", bits(x))]


def test_without_digests_a_collective_is_recorded_without_bits(tmp_path: Path) -> None:
    run = recorded(tmp_path, lambda: dist.all_reduce(torch.ones(4)), digests="none")

    assert len(list(run.records(Landmark))) == 1
    assert sides(run) == []


def test_a_sparse_collective_has_no_bits_and_is_reported_as_not_covered(tmp_path: Path) -> None:
    run = recorded(tmp_path, lambda: dist.all_reduce(torch.eye(3).to_sparse()))
    expected = {record.what.split(" (")[0] for record in run.records(NotCovered)}

    assert "the bits of a collective or of parameters" in expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c10d::allreduce_", True),
        ("_c10d_functional::wait_tensor", True),
        ("c10d::send", False),  # waiting for it may block for ever
        ("c10d::barrier", False),
        ("_c10d_functional::_wrap_tensor_autograd", False),
        ("aten::add_", False),
    ],
)
def test_point_to_point_operators_and_wrappers_are_no_landmarks(name: str, expected: bool) -> None:
    assert is_collective(name) == expected


def test_results_that_the_program_waits_for_one_by_one_are_all_recorded(tmp_path: Path) -> None:
    x, y = torch.zeros(4), torch.ones(4)

    def program() -> None:
        for one in functional.all_reduce_coalesced([x, y], "sum", dist.group.WORLD):
            one + 1

    (process,) = ranks_of(recorded(tmp_path, program))[0]
    (event,) = process

    assert (event.name, event.results) == ("_c10d_functional::all_reduce_coalesced", tuple(bits(x, y)))
