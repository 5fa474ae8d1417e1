"""On a GPU: C++ takes the digests of known operators; the run is the same as that of the Python form."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from handmade.records import INFO
from recorded.both_forms import in_both_forms, operators
from recorded.method_calls import calls_of
from torch import nn

from tracing import store
from tracing.model import LaunchLine, NotCovered, OperatorDigests
from tracing.operators.dispatch import Operators
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_digests import OperatorDigestQueue

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
STEPS = 10


def training_step() -> Callable[[], None]:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(65, 65), nn.GELU(), nn.LayerNorm(65)) for _ in range(3)]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    compiled, x = torch.compile(model), torch.randn(128, 65, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        y = compiled(x)
        (y.t()[1:, ::2].square().mean() + model(x)[3:].bfloat16().float().sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def test_the_run_is_that_of_the_python_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = training_step()
    step()
    learned = calls_of(monkeypatch, OperatorDigestQueue, "learned")  # by the compiled form

    python, compiled = in_both_forms(
        tmp_path, monkeypatch, lambda: [step() for _ in range(STEPS)], operators="digests"
    )

    expected = list(python.records(OperatorDigests))
    assert list(compiled.records(OperatorDigests)) == expected != []
    assert operators(compiled) == operators(python)
    assert [*compiled.records(LaunchLine)] == [*python.records(LaunchLine)]
    assert [*compiled.records(NotCovered)] == [*python.records(NotCovered)]
    assert 0 < len(learned) < len(expected)  # of two sides each


def test_known_operators_do_not_reach_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = training_step()
    step()
    dispatched = calls_of(monkeypatch, Operators, "__torch_dispatch__")
    taken = calls_of(monkeypatch, OperatorDigestQueue, "take")
    with LaunchRecorder(store.create(tmp_path, INFO), operators="digests") as recorder:
        for _ in range(3 * STEPS):
            step()
    count = len(list(store.Run(recorder.writer.path).records(OperatorDigests)))

    assert count > 30 * 3 * STEPS
    assert len(dispatched) < count / 10  # above all those with a list of numbers that is new at each step
    learned = count / 20  # the first of each layout
    assert len(taken) < 2 * len(dispatched) + learned  # before and after each


def test_what_is_recorded_in_inference_mode_arrives_outside_of_it(tmp_path: Path) -> None:
    x = torch.rand(100, device="cuda")
    compiled = torch.compile(lambda x: x.sin() * 2)
    with LaunchRecorder(store.create(tmp_path, INFO), operators="digests") as recorder:
        with torch.inference_mode():
            for _ in range(STEPS):
                compiled(x).neg()
        compiled(x).neg()
    run = store.Run(recorder.writer.path)

    assert [launch.finished for launch in run.launches()] == [True] * (STEPS + 1)
    assert len(list(run.records(OperatorDigests))) >= STEPS + 1


def test_threads_and_streams_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(1000, device="cuda")
            for _ in range(200):
                x.add_(1)
        stream.synchronize()

    def program() -> None:
        for _ in range(3):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    python, compiled = in_both_forms(tmp_path, monkeypatch, program, operators="digests")

    assert list(compiled.records(OperatorDigests)) == list(python.records(OperatorDigests))
    assert len(operators(compiled)) >= 3 * 200
