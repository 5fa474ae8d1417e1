"""What recording adds to an operator, by C++ and by Python, as ratios of processor time to the bare operator.

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


def microseconds(call: Callable[[], object], context: AbstractContextManager[object]) -> float:
    """Processor time of one call on this thread."""
    with context:
        for _ in range(CALLS):
            call()
        started = time.thread_time()
        for _ in range(CALLS):
            call()
        return (time.thread_time() - started) / CALLS * 1e6


@pytest.mark.parametrize(
    ("facts", "device"), [("writers", "host"), ("digests", "host"), ("digests", "gpu")], ids="-".join
)
def test_minima_of_seven_pairs(facts: OperatorFacts, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "gpu":
        host_gpu(monkeypatch, slots=gpu.SLOTS)
    print(f"\n  --operators {facts}, {device}: us of the bare operator, and ratios to it")
    for name, call in OPERATORS.items():
        times: dict[str, list[float]] = {"bare": [], "C++": [], "Python": []}
        for _ in range(7):
            times["bare"].append(microseconds(call, nullcontext()))
            for form, switch in (("C++", "1"), ("Python", "0")):
                monkeypatch.setenv(SWITCH, switch)
                with tempfile.TemporaryDirectory() as folder:
                    recorder = LaunchRecorder(store.create(Path(folder), INFO), "none", operators=facts)
                    times[form].append(microseconds(call, recorder))
        bare, *recorded = map(min, times.values())
        print(f"  {name:16} {bare:6.2f} us", *(f"{one / bare:8.1f}x" for one in recorded), flush=True)
