"""What starts a process of multiprocessing as a new program is called through the wrapper, and restored."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest

from tracing.launch.coverage import watched
from tracing.upstream.torch.spawned_processes import around_spawns
from tracing.virtual_gpu import virtual_gpu


def started(method: str) -> None:
    process = multiprocessing.get_context(method).Process(target=print)  # type: ignore[attr-defined]
    process.start()
    process.join()


def test_a_spawned_process_starts_through_the_wrapper() -> None:
    calls: list[str] = []

    def wrapper(original: Any) -> Any:
        def launch(*args: Any) -> Any:
            calls.append("launch")
            return original(*args)

        return launch

    with around_spawns(wrapper):
        started("spawn")
        started("fork")
    started("spawn")

    assert calls == ["launch"]


def test_on_the_virtual_gpu_the_first_spawned_process_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    reported: list[str] = []
    with virtual_gpu(), watched(lambda what, setting: reported.append(what)):
        for _ in range(2):
            started("spawn")

    assert capsys.readouterr().err.count("has no virtual GPU; fork it instead") == 1
    assert set(reported) == {"launches and operators of processes that the program spawns"}
