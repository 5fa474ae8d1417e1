"""`with tracing.recording() as run:` around code of a test."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.optim import optimizer

import tracing
from tracing import store
from tracing.errors import Problem
from tracing.model import Outcome, Workload
from tracing.program.experiment import results_of


def hooked() -> tuple[object, ...]:
    handles = (optimizer._global_optimizer_pre_hooks, optimizer._global_optimizer_post_hooks)
    return CachingAutotuner.run, threading.Thread.start, torch.ones(1).device, *map(len, handles)


def test_a_nested_recording_and_the_one_around_it_are_complete_and_hooks_are_restored(tmp_path: Path) -> None:
    total = torch.compile(lambda x: x.relu().sum() * 2)
    wave = torch.compile(lambda x: x.sin() * 2)
    x = torch.ones(64)
    before = hooked()

    with tracing.recording(runs=tmp_path, name="outer") as outer:
        total(x)
        tracing.step()
        with tracing.recording(runs=tmp_path, keep_inputs=True) as inner:
            wave(x)
            tracing.step()
            wave(x)
        total(x)

    assert hooked() == before
    assert [one.step for one in outer.launches()] == [(0, 0), (1, 0), (2, 0), (2, 1)]
    assert [one.step for one in inner.launches()] == [(0, 0), (1, 0)]
    assert [one.kernel_name for one in inner.launches()] == [one.kernel_name for one in outer.launches()][1:3]
    assert (outer.info.case, inner.info.case) == ("outer", "test_code_recording")
    assert [one.status for run in (outer, inner) for one in run.records(Outcome)] == ["ended", "ended"]


def test_nested_recordings_of_kernels_in_cpp_are_complete(tmp_path: Path) -> None:
    wave, x = torch.compile(lambda x: x.sin() * 2), torch.ones(64)

    with tracing.recording(runs=tmp_path, no_virtual_gpu=True) as outer:
        wave(x)
        with tracing.recording(runs=tmp_path, no_virtual_gpu=True) as inner:
            wave(x)
        wave(x)

    assert [len(list(run.launches())) for run in (outer, inner)] == [3, 1]


def test_an_exception_inside_is_raised_and_written_down(tmp_path: Path) -> None:
    with pytest.raises(KeyError), tracing.recording(runs=tmp_path) as run:
        raise KeyError("missing")

    assert [(one.status, one.detail) for one in run.records(Outcome)] == [("failed", "KeyError: 'missing'")]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"keep_inputs": True, "keep_memory": "2GB"}, "keep_memory='2GB'.: '2GB' is not of type int"),
        ({"seed": "0"}, "seed='0'.: '0' is not of type int or None"),
        ({"last": True}, "last=True.: True is not of type int or None"),
        ({"rank": 3}, "rank=3.: 3 is not of type list of int"),
        ({"rank": ["a"]}, "is not of type list of int"),
        ({"kernel": 5}, "kernel=5.: 5 is not of type list of str"),
        ({"hash_fn": 5}, "hash_fn=5.: 5 is not of type function or str or None"),
        ({"keep_memory": -1}, "keep_memory=-1. is less than 0"),
        ({"phase": "forwrd"}, "phase='forwrd'.: there is no such phase"),
    ],
)
def test_a_value_of_another_type_is_refused(tmp_path: Path, options: dict[str, Any], what: str) -> None:
    with pytest.raises(Problem, match=what):
        tracing.recording(runs=tmp_path, **options)

    assert not list(tmp_path.iterdir())


def test_a_recording_that_is_refused_in_a_thread_leaves_no_run(tmp_path: Path) -> None:
    refused: list[Problem] = []

    def record(recording: threading.Event, other: threading.Event) -> None:
        try:
            with tracing.recording(runs=tmp_path):
                recording.set()
                other.wait()
        except Problem as problem:
            refused.append(problem)
            recording.set()

    begun, end = threading.Event(), threading.Event()
    (first := threading.Thread(target=record, args=(begun, end))).start()
    begun.wait()
    (second := threading.Thread(target=record, args=(threading.Event(), end))).start()
    second.join()
    end.set()
    first.join()

    assert len(refused) == 1 and len(store.recorded(tmp_path)) == 1


def test_a_recording_is_entered_once_and_a_decorated_function_records_each_call(tmp_path: Path) -> None:
    recording = tracing.recording(runs=str(tmp_path), passes=False)
    with recording:
        pass
    with pytest.raises(Problem, match="was entered before"), recording:
        pass

    @recording  # type: ignore[operator]  # as of any context manager of contextlib
    def block() -> None: ...

    block()
    block()
    assert len(list(tmp_path.iterdir())) == 3


def test_an_unknown_option_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no option keep_input; nearest: keep_inputs"):
        tracing.recording(runs=tmp_path, keep_input=True)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "value"), [("digests", "some"), ("until", "NaN"), ("keep_spill", "smallest")]
)
def test_a_value_that_an_option_does_not_have_is_refused_as_early(
    option: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(Problem, match=f"{option}='{value}'"):
        tracing.recording(runs=tmp_path, **{option: value})

    assert not list(tmp_path.iterdir())


def test_a_workload_is_compiled_as_it_asks() -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    workload = Workload(lambda x: x + 1, (torch.ones(2),), fullgraph=True, backend=backend)
    results_of(workload, torch.compile, 0)

    assert len(graphs) == 1
    assert workload.compiling == {"fullgraph": True, "backend": backend}


def test_a_recording_is_refused_while_another_thread_holds_the_virtual_gpu(tmp_path: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def record() -> None:
        with tracing.recording(runs=tmp_path):
            begun.set()
            may_end.wait(60)

    thread = threading.Thread(target=record)
    thread.start()
    begun.wait(60)
    try:
        with pytest.raises(Problem, match="begin a recording in the main thread"):
            tracing.recording(runs=tmp_path).__enter__()
    finally:
        may_end.set()
        thread.join()

    with tracing.recording(runs=tmp_path) as run:
        torch.compile(lambda x: x + 1)(torch.ones(8))
    assert len(list(run.launches())) == 1
