"""The recorder's own computations are invisible to the program: to Dynamo, modes, transforms and autograd."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from commands import DATA, tracing
from generated.compiled_programs import run_twice
from torch._dynamo import trace_rules

from tracing.launch.hidden_computation import HiddenComputation, own_frames_skipped

# They have most of the steps that a random program can have; all two hundred are in tests/soak.
SEEDS = (5, 49, 51, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (26, 52)))


@pytest.mark.parametrize("seed", SEEDS)
def test_recording_changes_nothing_of_a_compiled_program(seed: int, tmp_path: Path) -> None:
    bare, recorded, _ = run_twice(seed, tmp_path)

    assert recorded == bare
    assert not recorded.error


@pytest.mark.soak
def test_a_layer_norm_that_dynamo_breaks_at_runs_compiled_under_the_default_recording(tmp_path: Path) -> None:
    done = tracing("run", str(DATA / "layer_norm.py"), runs=tmp_path)

    assert done.returncode == 0, done.stderr
    recorded, seen = re.findall(r"launches recorded: (\d+) of (\d+)", done.stderr)[0]
    assert recorded == seen
    assert int(seen) >= 3  # the layer norm's, and what Inductor makes of the rest


def test_nothing_of_the_program_is_active_while_unseen() -> None:
    x = torch.ones(3, requires_grad=True)
    seen: list[object] = []

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Watching():
        with HiddenComputation():
            y = x * 2
        assert not seen
        assert (x * 2).requires_grad

    assert seen
    assert not y.requires_grad


def test_dynamo_gets_its_list_of_skipped_files_back() -> None:
    before = list(trace_rules.SKIP_DIRS)

    with own_frames_skipped(), own_frames_skipped():
        assert trace_rules.check(HiddenComputation.__enter__)

    assert not trace_rules.check(HiddenComputation.__enter__)
    assert before == trace_rules.SKIP_DIRS
