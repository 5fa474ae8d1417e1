"""The recorded duration of each launch."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import triton
from handmade.records import INFO
from recorded.host_gpu import driver
from recorded.launches import added, raising, read
from recorded.launches import recorded as launches_of

from tracing import store
from tracing.model import LaunchTime
from tracing.native.extension import extension
from tracing.record.launches import timers
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.timers import LaunchTimers, Timers
from tracing.record.launches.timing import LaunchTimes
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@pytest.fixture(params=["Python", "C++"])
def kind(request: pytest.FixtureRequest) -> Callable[[], LaunchTimers]:
    """Makes the timers of one form."""
    return Timers if request.param == "Python" else extension("launches").Timers


def times_by(kind: Callable[[], LaunchTimers], writer: store.RunWriter) -> LaunchTimes:
    times = LaunchTimes(writer)
    times.timers = kind()
    return times


def test_the_time_of_a_launch_is_measured_between_its_hooks(
    kind: Callable[[], LaunchTimers], tmp_path: Path
) -> None:
    writer = store.create(tmp_path, INFO)
    times = times_by(kind, writer)
    times.start(0, None, 0)
    time.sleep(0.02)
    times.stop(0)
    times.close()

    (line,) = store.Run(writer.path).records(LaunchTime)
    assert line.wall_us >= 20_000
    assert line.device_us is None


def test_times_are_written_in_launch_order_whichever_launch_returns_first(
    kind: Callable[[], LaunchTimers], tmp_path: Path
) -> None:
    writer = store.create(tmp_path, INFO)
    times = times_by(kind, writer)
    for launch in range(1000):
        times.start(launch, None, 0)
        if launch % 2:
            times.stop(launch)
            times.stop(launch - 1)
    times.close()

    assert [line.launch for line in store.Run(writer.path).records(LaunchTime)] == list(range(1000))


def test_a_launch_that_has_not_returned_delays_later_times_until_the_end(
    kind: Callable[[], LaunchTimers],
) -> None:
    measured = kind()
    for launch in range(300):
        measured.start(launch, timers.HOST, 0)
        if launch != 100:
            measured.stop(launch)

    assert measured.due()
    assert launches_in(measured.lines()) == list(range(100))
    assert not measured.due()
    measured.finish()
    assert launches_in(measured.lines()) == list(range(101, 300))


def test_a_launch_that_failed_delays_65536_later_times_at_most(kind: Callable[[], LaunchTimers]) -> None:
    measured = kind()
    measured.start(0, timers.HOST, 0)
    for launch in range(1, (1 << 16) + 1):
        measured.start(launch, timers.HOST, 0)
        measured.stop(launch)

    assert len(measured.lines()) == 1 << 16


def launches_in(lines: list[bytes]) -> list[int]:
    return [msgspec.json.decode(line, type=LaunchTime).launch for line in lines]


class Event:
    """Of a stream that has executed everything; `driver` counts what is recorded on it."""

    def __init__(self, enable_timing: bool) -> None:
        self._number = ctypes.c_int64()

    @property
    def at(self) -> int:
        return self._number.value

    def record(self, stream: int) -> None:
        driver().cuEventRecord(ctypes.byref(self._number), None)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


def test_the_time_on_a_device_is_that_between_two_events(
    kind: Callable[[], LaunchTimers], monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: tests/gpu has the same with it")
    driver()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(timers, "stream_of", lambda stream, device: stream)
    measured = kind()
    lines: list[bytes] = []
    for launch in range(0, 1000, 2):
        measured.start(launch, 0, 7)
        measured.start(launch + 1, 1, 7)  # it begins before the other one ends
        measured.stop(launch + 1)
        measured.stop(launch)
        if measured.due():
            lines += measured.lines()
    measured.finish()
    lines += measured.lines()

    times = [msgspec.json.decode(line, type=LaunchTime) for line in lines]
    assert [one.launch for one in times] == list(range(1000))
    assert [one.device_us for one in times] == [3000.0, 1000.0] * 500


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
