"""Digests between two launches that a CUDA graph captures are captured together."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tracing.digest.kernel import FIELDS
from tracing.digest.tables import Call
from tracing.record.launches import launch_digests
from tracing.record.launches.adjacent_launches import LOST
from tracing.record.launches.digested_tensors import calls_at, digested_tensors
from tracing.record.launches.launch_digests import LaunchDigests

LINE = object()  # of the second launch
SLOT = FIELDS * 8  # bytes


class Graph:
    """Takes down what a graph would capture: the addresses of the slots and the number of calls."""

    def __init__(self) -> None:
        self.taken = 0
        self.captured: list[tuple[str, list[int], int]] = []
        self.rows: list[int] = []

    def reserve(self, count: int) -> tuple[int, int]:
        first, self.taken = self.taken, self.taken + count
        return first * SLOT, first

    def add(self, address: int, stream: int, calls: Sequence[Call]) -> None:
        count = sum(table.count for table, _ in calls)
        self.captured.append(("alone", [address + i * SLOT for i in range(count)], len(calls)))

    def add_merged(self, slots: Sequence[int], stream: int, calls: Sequence[Call]) -> None:
        self.captured.append(("together", list(slots), len(calls)))

    def ended(self, launch: int, first: int, sides: Any) -> None:
        self.rows.append(launch)


def launch(index: int, graph: Graph, stream: int = 7) -> Any:
    """A launch that reads two tensors and writes the second."""
    tensors = [torch.zeros(16), torch.zeros(16)]
    sides = {
        name: digested_tensors(
            {i: tensors[i] for i in positions}, [0, 1], torch.device("cuda", 0), wanted=True
        )
        for name, positions in (("before", [0, 1]), ("after", [1]))
    }
    addresses = [tensor.data_ptr() for tensor in tensors]
    calls = {name: calls_at(side, addresses) for name, side in sides.items()}
    return SimpleNamespace(
        index=index,
        graph=graph,
        stream=stream,
        captured=SimpleNamespace(digested=False),
        before=sides["before"],
        template=SimpleNamespace(after=sides["after"]),
        slots=SimpleNamespace(**calls),
        address=0,
        slot=0,
    )


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def digests(notes: list[str], monkeypatch: pytest.MonkeyPatch) -> LaunchDigests:
    catalogue: Any = SimpleNamespace(not_covered=lambda what, why: notes.append(what))
    monkeypatch.setattr(launch_digests, "following", lambda template: LINE)
    monkeypatch.setattr(launch_digests, "follows", lambda line: line is LINE)
    return LaunchDigests(catalogue, lambda launches: None)


def captured(digests: LaunchDigests, launches: Sequence[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for number, one in enumerate(launches):
        digests.before(one)
        if number + 1 == len(launches):
            monkeypatch.setattr(launch_digests, "following", lambda template: None)
        digests.after(one)


def test_those_after_a_launch_and_before_the_next_are_together(
    digests: LaunchDigests, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph()
    launches = [launch(0, graph), launch(1, graph)]
    captured(digests, launches, monkeypatch)

    assert graph.captured == [
        ("alone", [0, SLOT], 1),
        ("together", [2 * SLOT, 3 * SLOT, 4 * SLOT], 2),
        ("alone", [5 * SLOT], 1),
    ]
    assert graph.rows == [0, 1]
    assert all(one.captured.digested for one in launches)


def test_on_two_streams_they_are_not(digests: LaunchDigests, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    captured(digests, [launch(0, graph), launch(1, graph, stream=8)], monkeypatch)

    assert [kind for kind, _, _ in graph.captured] == ["alone"] * 4
    assert graph.rows == [0, 1]


def test_a_launch_that_an_exception_follows_has_no_digests(
    digests: LaunchDigests, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph()
    launches = [launch(0, graph), launch(1, graph)]
    monkeypatch.setattr(launch_digests, "follows", lambda line: False)
    captured(digests, launches, monkeypatch)

    assert graph.rows == [1]
    assert [one.captured.digested for one in launches] == [False, True]
    assert notes == [LOST]
