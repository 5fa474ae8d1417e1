"""The recorded duration of each launch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
from handmade.records import INFO
from recorded.launches import added, raising, read
from recorded.launches import recorded as launches_of

from tracing import store
from tracing.model import LaunchTime
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.timing import LaunchTimes
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def test_the_time_of_a_launch_is_measured_between_its_hooks(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    times = LaunchTimes(writer)
    times.start(0, None, 0)
    time.sleep(0.02)
    times.stop(0)
    times.close()

    (line,) = store.Run(writer.path).records(LaunchTime)
    assert line.wall_us >= 20_000
    assert line.device_us is None


def test_times_are_written_in_launch_order_whichever_launch_returns_first(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    times = LaunchTimes(writer)
    for launch in range(1000):
        times.start(launch, None, 0)
        if launch % 2:
            times.stop(launch)
            times.stop(launch - 1)
    times.close()

    assert [line.launch for line in store.Run(writer.path).records(LaunchTime)] == list(range(1000))


@pytest.mark.parametrize("digests", ["all", pytest.param("none", marks=pytest.mark.soak)])
def test_every_launch_has_its_time(gpu: None, tmp_path: Path, digests: Any) -> None:
    launches = launches_of(
        tmp_path, lambda: torch.compile(torch.sin)(added(torch.ones(100))), digests, time=True
    )

    assert all(launch.time is not None and launch.time.wall_us > 0 for launch in launches)
    assert len(launches) == 2


def test_a_launch_that_raises_has_no_time_and_the_others_have_theirs(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        added(torch.ones(100))
        triton.knobs.runtime.launch_enter_hook.add(raising)
        with pytest.raises(ZeroDivisionError):
            added(torch.ones(100))
        triton.knobs.runtime.launch_enter_hook.remove(raising)
        added(torch.ones(100))

    launches = launches_of(tmp_path, program, time=True)

    assert [launch.time is None for launch in launches] == [False, True, False]


def test_times_are_measured_only_on_request(gpu: None, tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer):
        added(torch.ones(100))

    assert [launch.time for launch in read(writer)] == [None]
    assert not list(writer.path.glob("times-*"))
