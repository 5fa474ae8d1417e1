"""What recording adds to operators, by C++ and by Python, as ratios of processor time to the bare ones.

There is no GPU here: `host_gpu` stands in for one, whose digest of four elements costs next to nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import torch
from handmade.records import INFO
from recorded.host_gpu import host_gpu
from recorded.training_step import training_step

from tracing import store
from tracing.digest import gpu
from tracing.environment.compiled_parts import SWITCH
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_calls import OperatorFacts

CALLS = 1000
x, y = torch.ones(4), torch.ones(4)
OPERATORS: dict[str, Callable[[], object]] = {
    "x * y": lambda: x * y,
    "x.add_(1)": lambda: x.add_(1),
    "x.t()": lambda: x.t(),
    "torch.empty(4)": lambda: torch.empty(4),
}


def microseconds(
    call: Callable[[], object], context: AbstractContextManager[object], calls: int = CALLS
) -> float:
    """Processor time of one call on this thread."""
    with context:
        for _ in range(calls):
            call()
        started = time.thread_time()
        for _ in range(calls):
            call()
        return (time.thread_time() - started) / calls * 1e6


def minima(
    call: Callable[[], object], facts: OperatorFacts, monkeypatch: pytest.MonkeyPatch, rounds: int, calls: int
) -> tuple[float, str]:
    """Microseconds of the bare call, and the ratios to it while C++ records, and while Python does."""
    times: dict[str, list[float]] = {"bare": [], "C++": [], "Python": []}
    for _ in range(rounds):
        times["bare"].append(microseconds(call, nullcontext(), calls))
        for form, switch in (("C++", "1"), ("Python", "0")):
            monkeypatch.setenv(SWITCH, switch)
            with tempfile.TemporaryDirectory() as folder:
                recorder = LaunchRecorder(store.create(Path(folder), INFO), "none", operators=facts)
                times[form].append(microseconds(call, recorder, calls))
    bare, *recorded = map(min, times.values())
    return bare, " ".join(f"{one / bare:8.1f}x" for one in recorded)


@pytest.mark.parametrize(("facts", "device"), [("writers", "host"), ("digests", "host"), ("digests", "gpu")])
def test_minima_of_seven_pairs(facts: OperatorFacts, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "gpu":
        host_gpu(monkeypatch, slots=gpu.SLOTS)
    print(f"\n  --operators {facts}, {device}: us of the bare operator, and ratios to it")
    for name, call in OPERATORS.items():
        bare, ratios = minima(call, facts, monkeypatch, 7, CALLS)
        print(f"  {name:16} {bare:6.2f} us {ratios}", flush=True)


@pytest.mark.parametrize("facts", ["writers", "digests"])
@pytest.mark.parametrize("width", [16, 256])
def test_minima_of_three_training_steps(
    width: int, facts: OperatorFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # all of a step's time is this thread's
    try:
        bare, ratios = minima(training_step(width), facts, monkeypatch, 3, 20)
    finally:
        torch.set_num_threads(threads)
    print(f"\n  a training step of width {width}, --operators {facts}, host: {bare / 1e3:.2f} ms {ratios}")
