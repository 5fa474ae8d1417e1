"""C++ and Python record the same operators, and change no program: random ones, forks, interrupts."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from generated.operator_programs import program
from handmade.records import INFO
from recorded.both_forms import in_both_forms, operators
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import tracing
from tracing import store
from tracing.environment.compiled_parts import SWITCH
from tracing.model import NotCovered, OperatorCall
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_calls import OperatorCalls

TIMES = 3  # the compiled form records from the second or third time on
FORMS = {"compiled": "1", "python": "0"}  # -> TRACING_NATIVE


@pytest.mark.parametrize("seed", range(8))
def test_a_random_program_is_recorded_the_same_and_has_the_same_results(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Any] = []
    order = ("python", "compiled") if seed % 2 else ("compiled", "python")
    python, compiled = in_both_forms(
        tmp_path, monkeypatch, lambda: results.extend(program(seed) for _ in range(TIMES)), order
    )

    assert [*operators(compiled)] == [*operators(python)] != []
    assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]
    assert results == [program(seed)] * TIMES


def distributed() -> Callable[[], object]:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (2,))
    x = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    w = distribute_tensor(torch.ones(4, 4), mesh, [Replicate()])
    return lambda: (x @ w).relu().redistribute(mesh, [Replicate()]).to_local().sum()


def selectively_checkpointed() -> Callable[[], object]:
    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        kept = operator is torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    module, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.randn(2, 4)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    return lambda: checkpoint(module, x, use_reentrant=False, context_fn=contexts).sum().backward()


@pytest.mark.parametrize("make", [distributed, selectively_checkpointed])
def test_a_program_of_many_parts_is_recorded_the_same(
    make: Callable[[], Callable[[], object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if make is distributed:
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        step = make()
        python, compiled = in_both_forms(tmp_path, monkeypatch, lambda: [step() for _ in range(TIMES)])
    finally:
        if make is distributed:
            torch.distributed.destroy_process_group()

    assert [*operators(compiled)] == [*operators(python)] != []


def test_threads_that_run_at_once_are_recorded_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(size: int) -> None:
        x = torch.ones(size)
        for _ in range(100):
            x = (x * 1.0).add_(0)

    def run() -> None:
        threads = [threading.Thread(target=work, args=(size,)) for size in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    python, compiled = in_both_forms(tmp_path, monkeypatch, run)

    # in another order: each form has its own lock
    facts = [sorted((one.name, one.arguments, str(one.writes[0].tensor)) for one in operators(run))
             for run in (python, compiled)]  # fmt: skip
    assert facts[0] == facts[1] != []
    for run_ in (python, compiled):
        assert [call.index for call in run_.records(OperatorCall)] == list(range(len(facts[0])))


@pytest.mark.parametrize("form", FORMS)
def test_a_process_that_is_forked_while_a_thread_records_leaves_the_recording(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Left(Exception):
        """The child leaves the recording by this exception."""

    monkeypatch.setenv(SWITCH, FORMS[form])
    x, stop, parent = torch.ones(4), threading.Event(), os.getpid()
    ended: list[int] = []

    def work() -> None:
        while not stop.is_set():
            x * 1.0

    writer = store.create(tmp_path, INFO)
    try:
        with LaunchRecorder(writer, "none"):
            thread = threading.Thread(target=work)
            thread.start()
            for _ in range(20):
                child = os.fork()
                if not child:
                    signal.alarm(30)  # ends a child that waits for a lock
                    x + 1
                    raise Left
                ended.append(os.waitpid(child, 0)[1])
            stop.set()
            thread.join()
    except BaseException as error:
        if os.getpid() != parent:
            os._exit(0 if isinstance(error, Left) else 1)
        raise
    assert ended == [0] * 20
    calls = [call.index for call in store.Run(writer.path).records(OperatorCall)]
    assert calls == list(range(len(calls))) != []


@pytest.mark.parametrize("form", FORMS)
def test_an_interrupt_in_the_recorder_reaches_the_program_and_the_recording_continues(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv(SWITCH, FORMS[form])
    x, writer = torch.ones(4), store.create(tmp_path, INFO)
    with LaunchRecorder(writer, "none", strict=False):
        x + 1
        x + 1
        with monkeypatch.context() as patch:
            for method in ("after", "executed"):
                patch.setattr(OperatorCalls, method, interrupted)
            with pytest.raises(KeyboardInterrupt):
                x[:3] + 1  # arguments that are known, on another layout
        x + 2

    run = store.Run(writer.path)
    assert [operator.arguments for operator in operators(run)] == ["other=1", "other=1", "other=2"]


def test_a_notebook_records_twice_and_within_a_recording(tmp_path: Path) -> None:
    x = torch.ones(4)
    with tracing.recording(runs=tmp_path) as outer:
        x + 1
        with tracing.recording(runs=tmp_path) as inner:
            [x + 1 for _ in range(3)]
        x + 1
    with tracing.recording(runs=tmp_path) as later:
        [x + 1 for _ in range(2)]

    assert [len(operators(run)) for run in (outer, inner, later)] == [5, 3, 2]
