"""The launches of a run while it is recorded, as `tracing show --follow` prints them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from handmade.records import INFO
from msgspec.structs import replace
from recorded.launches import added

import tracing
from tracing import store
from tracing.analyze.runs.new_launches import DeletedLaunches, NewLaunches
from tracing.model import StepSelection
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu


def read(run: Path, launches: NewLaunches, *, ended: bool = False) -> list[int | tuple[int, int]]:
    return [
        (one.start, one.stop) if isinstance(one, DeletedLaunches) else one.index
        for _, one in launches.read(store.Run(run), ended=ended)
    ]


def recorded(
    runs: Path, selection: StepSelection, then: Callable[[Path, Callable[[int], None]], None]
) -> None:
    """Calls `then` with the run, and with a function that makes steps of one launch."""
    writer = store.create(runs, replace(INFO, steps=selection))

    def steps(count: int) -> None:
        for _ in range(count):
            added(torch.ones(64))
            tracing.step()

    with virtual_gpu(), LaunchRecorder(writer, steps=selection):
        then(writer.path, steps)
    writer.close()


@pytest.mark.parametrize("last", [0, 100])
def test_each_launch_is_read_once_when_it_arrives(tmp_path: Path, last: int) -> None:
    def then(run: Path, steps: Callable[[int], None]) -> None:
        launches = NewLaunches()
        assert read(run, launches) == []
        steps(3)
        assert read(run, launches) == [0, 1, 2]
        assert read(run, launches) == []
        steps(2)
        assert read(run, launches) == [3, 4]
        steps(1)
        assert read(run, launches, ended=True) == [5]

    recorded(tmp_path, StepSelection(last=last), then)


def test_it_can_begin_with_the_newest_launches(tmp_path: Path) -> None:
    def then(run: Path, steps: Callable[[int], None]) -> None:
        steps(9)
        launches = NewLaunches(newest=2)
        assert read(run, launches) == [7, 8]
        steps(1)
        assert read(run, launches) == [9]

    recorded(tmp_path, StepSelection(), then)


def test_launches_that_were_deleted_before_they_were_read_are_named(tmp_path: Path) -> None:
    def then(run: Path, steps: Callable[[int], None]) -> None:
        launches = NewLaunches()
        steps(3)
        assert read(run, launches) == [0, 1, 2]
        steps(40)
        (deleted, *others) = read(run, launches)
        assert isinstance(deleted, tuple)
        assert deleted[0] == 3 and others == list(range(deleted[1], 43))

    recorded(tmp_path, StepSelection(last=5), then)
