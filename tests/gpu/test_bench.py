"""On a GPU: latencies are those of the GPU, and cases are measured there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from tracing.bench.latency import latencies

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
CYCLES = 20_000_000  # at 2 GHz 10 ms


def test_a_latency_is_the_time_of_the_gpu_and_not_that_of_the_launch() -> None:
    times = latencies(lambda: torch.cuda._sleep(CYCLES), cuda=True, runs=3, now=lambda index: None)

    assert len(times) == 3 and min(times) > 1


def test_a_case_is_measured_on_the_gpu() -> None:
    command = [sys.executable, "-m", "tracing", "bench", "silu", "--warmup", "1", "--runs", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (case,) = json.loads(done.stdout)["cases"]

    assert done.returncode == 0, done.stderr
    assert case["device"] == torch.cuda.get_device_name()
    assert [one["verdict"] for one in case["backends"]] == ["reference", "pass"]
