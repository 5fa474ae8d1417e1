"""Recorders that overlap without nesting: torch and Triton are afterwards what they were before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import pytest
import torch
import triton
from handmade.records import new_run
from recorded.launches import added

from tracing import interpreter, store
from tracing.launch import hooks
from tracing.program.device import Device
from tracing.record.autotuning.winners import Winners
from tracing.record.graphs.graph_passes import graph_passes_recorded
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.passes.recorder import PassRecorder

PATCHED = ("torch", "triton", "threading")
GENERATED = "torch._inductor.runtime.compile_tasks."  # kernels, which come and go


def _attributes() -> Iterator[tuple[str, Any]]:
    # every attribute of the modules that recorders patch, and of the classes in them
    for module_name, module in list(sys.modules.items()):
        of_a_package = module_name.partition(".")[0] in PATCHED and not module_name.startswith(GENERATED)
        if not of_a_package and module is not interpreter:
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            yield f"{module_name}.{name}", value
            if isinstance(value, type) and value.__module__ == module_name:
                for member, content in list(vars(value).items()):
                    yield f"{module_name}.{name}.{member}", content


def _functions() -> dict[str, Any]:
    kinds = (FunctionType, BuiltinFunctionType, partial, type, staticmethod, classmethod, property)
    return {name: value for name, value in _attributes() if isinstance(value, kinds)}


def _recorders(folder: Path) -> list[AbstractContextManager[Any]]:
    writer = new_run(folder)
    return [Winners(writer), PassRecorder(writer), graph_passes_recorded(writer), LaunchRecorder(writer)]


def _compute() -> torch.Tensor:
    torch._dynamo.reset()
    return torch.compile(lambda x: torch.sin(x) * x)(torch.ones(64))


def _overlapping(a: list[AbstractContextManager[Any]], b: list[AbstractContextManager[Any]]) -> None:
    for one in (*a, *b):
        one.__enter__()
    _compute()
    for one in reversed(a):
        one.__exit__(None, None, None)
    _compute()
    for one in reversed(b):
        one.__exit__(None, None, None)


def test_recorders_that_overlap_restore_every_attribute(tmp_path: Path) -> None:
    with Device("sm_90").active():
        _compute()  # imports what is imported late
        for one in _recorders(tmp_path / "warm"):
            with one:
                pass
        before, hook = _functions(), triton.knobs.runtime.launch_exit_hook
        a, b = tmp_path / "a", tmp_path / "b"
        _overlapping(_recorders(a), _recorders(b))
        after = _functions()

        assert [name for name, value in before.items() if after.get(name) is not value] == []
        assert triton.knobs.runtime.launch_exit_hook is hook
    runs = [store.Run(store.recorded(folder)[0]) for folder in (a, b)]
    assert [len(list(run.launches())) for run in runs] == [1, 2]
    assert [sum(1 for _ in run.operators(run.processes()[0])) > 0 for run in runs] == [True, True]


class _Silent:
    def before(self, *launch: Any) -> None:
        pass

    def after(self, token: None) -> None:
        pass


class _Raising(_Silent):
    def after(self, token: None) -> None:
        raise ValueError("the user's")


def test_a_listener_that_raises_does_not_damage_the_run_of_another(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    with Device("sm_90").active(), LaunchRecorder(writer), hooks.installed(_Raising()):
        with pytest.raises(ValueError, match="the user's") as raised:
            added(torch.ones(64))
        assert raised.traceback[-1].path == Path(__file__)

    assert [(one.kernel_name, one.finished) for one in store.Run(writer.path).launches()] == [("add", True)]


def test_hooks_of_threads_that_overlap_are_removed_with_the_last(tmp_path: Path) -> None:
    before = _functions()
    first_entered, second_entered, first_left = (threading.Event() for _ in range(3))

    def first() -> None:
        with hooks.installed(_Silent()):
            first_entered.set()
            assert second_entered.wait(60)
        first_left.set()

    def second() -> None:
        assert first_entered.wait(60)
        with hooks.installed(_Silent()):
            second_entered.set()
            assert first_left.wait(60)

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    after = _functions()
    assert [name for name, value in before.items() if after.get(name) is not value] == []
