"""Other tools with hooks at Triton's launches, installed before or after ours: all see every launch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
import triton
from handmade.records import INFO
from recorded.launches import added, read

from tracing import store
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu

Seen: TypeAlias = Callable[[], list[str]]  # the kernels that a tool saw, in order
Tool: TypeAlias = Callable[[Path], AbstractContextManager[Seen]]


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


def hooks() -> tuple[Any, Any]:
    return triton.knobs.runtime.launch_enter_hook, triton.knobs.runtime.launch_exit_hook


def program() -> None:
    """Two launches by hand and one of Inductor, whose launchers call the hooks they were compiled with."""
    factor = next(factors)
    torch._dynamo.reset()
    torch.compile(lambda x: x * factor)(added(added(torch.ones(100))))


factors = count(2)
PROGRAM = ["add", "add", "triton_poi_fused_mul_0"]


@contextmanager
def added_hooks(folder: Path) -> Iterator[Seen]:
    entered: list[str] = []
    left: list[str] = []
    enter, leave = (lambda meta, names=names: names.append(meta.get()["name"]) for names in (entered, left))
    runtime = triton.knobs.runtime
    runtime.launch_enter_hook.add(enter)
    runtime.launch_exit_hook.add(leave)
    try:
        yield lambda: entered if entered == left else []
    finally:
        runtime.launch_enter_hook.remove(enter)
        runtime.launch_exit_hook.remove(leave)


@contextmanager
def assigned_hooks(folder: Path) -> Iterator[Seen]:
    entered: list[str] = []
    left: list[str] = []
    before = hooks()
    runtime = triton.knobs.runtime
    runtime.launch_enter_hook = lambda meta: entered.append(meta.get()["name"])
    runtime.launch_exit_hook = lambda meta: left.append(meta.get()["name"])
    try:
        yield lambda: entered if entered == left else []
    finally:
        runtime.launch_enter_hook, runtime.launch_exit_hook = before


@contextmanager
def proton(folder: Path) -> Iterator[Seen]:
    """Proton's hooks; its sessions need a GPU."""
    hook = pytest.importorskip("triton.profiler.hooks.hook", reason="this Triton has no Proton")
    entered: list[str] = []
    left: list[str] = []

    class Names(hook.Hook):  # type: ignore[misc, name-defined]
        activate = deactivate = init_handle = destroy_handle = lambda self, *args: None

        def enter(self, metadata: Any) -> None:
            entered.append(metadata.get()["name"])

        def exit(self, metadata: Any) -> None:
            left.append(metadata.get()["name"])

    hook.HookManager.register(Names(), 0)
    try:
        yield lambda: entered if entered == left else []
    finally:
        hook.HookManager.unregister(0)


@contextmanager
def tritonparse(folder: Path) -> Iterator[Seen]:
    logging = pytest.importorskip("tritonparse.structured_logging", reason="tritonparse is not installed")
    before = hooks()
    logging.init(str(folder), enable_trace_launch=True)

    def launches() -> list[str]:
        lines = [line for path in sorted(folder.glob("*.ndjson")) for line in path.read_text().splitlines()]
        events = [json.loads(line) for line in lines]
        return [event["name"] for event in events if event["event_type"] == "launch"]

    try:
        yield launches
    finally:
        logging.clear_logging_config()  # leaves None
        triton.knobs.runtime.launch_enter_hook, triton.knobs.runtime.launch_exit_hook = before


TOOLS = [added_hooks, assigned_hooks, proton, tritonparse]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_tool_installed_before_the_recorder_and_the_recorder_see_every_launch(
    tool: Tool, tmp_path: Path
) -> None:
    writer = store.create(tmp_path / "runs", INFO)
    with tool(tmp_path) as seen:
        theirs = hooks()
        with LaunchRecorder(writer):
            program()
        assert hooks() == theirs
        program()
        assert seen() == PROGRAM * 2

    launches = read(writer)
    assert [launch.kernel_name for launch in launches if launch.finished] == PROGRAM


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_tool_installed_during_the_recording_and_the_recorder_see_every_launch(
    tool: Tool, tmp_path: Path
) -> None:
    writer = store.create(tmp_path / "runs", INFO)
    with LaunchRecorder(writer):
        program()
        with tool(tmp_path) as seen:
            program()
        program()

    assert seen() == PROGRAM
    assert [launch.kernel_name for launch in read(writer) if launch.finished] == PROGRAM * 3


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_tool_that_outlives_the_recorder_keeps_its_hooks(tool: Tool, tmp_path: Path) -> None:
    writer = store.create(tmp_path / "runs", INFO)
    recorder = LaunchRecorder(writer)
    with recorder, tool(tmp_path) as seen:
        program()
        recorder.__exit__()
        program()
        assert seen() == PROGRAM * 2

    assert len(read(writer)) == len(PROGRAM)
