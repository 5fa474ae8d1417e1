"""A run stays readable after thousands of interrupts of its recording, which continues."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
import torch
from handmade.records import INFO
from recorded.both_forms import operators

from tracing import store
from tracing.environment.compiled_parts import SWITCH
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.upstream.torch.autograd import set_grad_enabled

SECONDS = 30


def interrupted(step: int) -> None:
    """Operators, until a timer raises KeyboardInterrupt."""
    x, choose = torch.ones(4), random.Random(step)
    signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-5, 2e-3))
    while True:
        (x * 2).add_(choose.randrange(50))
        torch.empty(choose.randrange(7))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("switch", ["1", "0"], ids=["compiled", "python"])
def test_interrupts_leave_a_readable_run(
    switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, switch)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    writer, interrupts, hidden = store.create(tmp_path, INFO), 0, 0
    try:
        with LaunchRecorder(writer, "none", strict=False) as recorder:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                try:
                    interrupted(interrupts)
                except KeyboardInterrupt:
                    interrupts += 1
                    hidden += not torch.is_grad_enabled()
                    set_grad_enabled(True)
            torch.ones(4).cos()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    print(f"\n  {interrupts} interrupts, {hidden} left gradients off")
    recorded = operators(store.Run(writer.path))
    indices = [operator.index for operator in recorded]
    assert not recorder.failsafe.over
    assert indices == sorted(set(indices))
    assert recorded[-1].name == "aten::cos"
    assert interrupts > 1000
