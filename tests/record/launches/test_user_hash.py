"""A user's own hash_fn is called for each tensor of each launch, and cannot disturb the recorded program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import DATA, tracing
from commands import recorded as ran
from data.hashes import dtype, exits, itself, raises_on_a_matrix, total
from handmade.records import INFO
from recorded.launches import added, read
from recorded.launches import recorded as launches_of

from tracing import store
from tracing.errors import Problem
from tracing.model import NotCovered, Scalar, UserHash, exact
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.launches.user_hash import load_hash_fn
from tracing.virtual_gpu import virtual_gpu

HASHES = DATA / "hashes.py"


@pytest.fixture
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@pytest.mark.parametrize(
    ("digests", "before"),
    [("all", {0: 100.0, 1: 0.0}), ("none", {0: 100.0, 1: 0.0}), ("declared", {0: 100.0})],
)
def test_tensors_that_would_have_a_digest_have_a_hash(
    gpu: None, tmp_path: Path, digests: Any, before: dict[int, float]
) -> None:
    x, y = torch.ones(100), torch.zeros(100)
    (launch,) = launches_of(tmp_path, lambda: added(x, y), digests, hash_fn=total)

    assert launch.hashes == UserHash(0, before, {1: 200.0})


def test_launches_and_operators_of_a_hash_fn_are_not_recorded(gpu: None, tmp_path: Path) -> None:
    def program() -> None:
        once = added(x := torch.ones(100))
        twice = added(once)
        kept.append((x, once, twice, torch.compile(torch.sin)(twice)))

    kept: list[
        object
    ] = []  # a freed tensor would pass its address, and so its storage number, to the next one
    plain, hashed = (launches_of(tmp_path, program, hash_fn=fn) for fn in (None, total))

    assert [launch.kernel_name for launch in hashed] == ["add", "add", "triton_poi_fused_sin_0"]
    assert [(arg.writer, arg.storage) for launch in hashed for arg in launch.args] == [
        (arg.writer, arg.storage) for launch in plain for arg in launch.args
    ]


@pytest.mark.parametrize("value", [True, 1, 1 << 100, 0.5, -0.0, "a", None, math.nan, -math.inf])
def test_any_scalar_is_a_hash(gpu: None, tmp_path: Path, value: Scalar) -> None:
    (launch,) = launches_of(tmp_path, lambda: added(torch.ones(4)), hash_fn=lambda tensor: value)

    assert launch.hashes is not None
    assert [exact(value_after) for value_after in launch.hashes.after.values()] == [exact(value)]


@pytest.mark.parametrize("hash_fn", [itself, exits, lambda tensor: 1 / 0, lambda tensor: [1]])
def test_a_hash_fn_that_fails_changes_neither_results_nor_launches(
    gpu: None, tmp_path: Path, hash_fn: Any
) -> None:
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer, hash_fn=hash_fn) as recorder:
        result = added(added(torch.ones(100)))

    assert torch.equal(result, torch.full((100,), 3.0))
    assert [(launch.finished, launch.hashes) for launch in read(writer)] == [(True, None)] * 2
    assert "hash_fn failed at launch 0, argument 0, before it" in recorder.hash_failure


def test_hashes_up_to_the_one_that_failed_are_kept(gpu: None, tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    with LaunchRecorder(writer, hash_fn=raises_on_a_matrix) as recorder:
        for shape in ((4,), (2, 2), (4,)):
            added(torch.ones(shape))

    assert [launch.hashes is not None for launch in read(writer)] == [True, False, False]
    assert "argument 0, before it: ValueError: a matrix (hashes.py:" in recorder.hash_failure
    (gap,) = store.Run(writer.path).records(NotCovered)
    assert gap.what == "hashes by hash_fn, from launch 1, argument 0, before it on"


# ---- through the command ----


@pytest.mark.soak
def test_hashes_and_times_of_a_run_are_shown(tmp_path: Path) -> None:
    path = ran("silu", tmp_path, "--hash-fn", f"{HASHES}:dtype", "--time")

    shown = tracing("show", path, runs=tmp_path).stdout
    assert shown.count("hash_fn: 'torch.float32'") == 3
    assert " µs on the host" in shown


@pytest.mark.soak
def test_a_hash_fn_that_fails_is_one_error_and_the_run_is_whole(tmp_path: Path) -> None:
    done = tracing("run", "silu", "--hash-fn", f"{HASHES}:itself", runs=tmp_path)
    shown = tracing("show", "latest", runs=tmp_path).stdout

    assert done.returncode == 2
    assert (
        "tracing: hash_fn failed at launch 0, argument 0, before it: TypeError: it returned a " in done.stderr
    )
    assert "Traceback" not in done.stderr
    assert "passed: the result agrees with eager" in shown
    assert "not covered: hashes by hash_fn" in shown


def test_a_function_is_named_by_file_or_by_module() -> None:
    from_file, from_module = load_hash_fn(f"{HASHES}:dtype"), load_hash_fn("data.hashes:dtype")

    assert from_file(torch.ones(1)) == from_module(torch.ones(1)) == dtype(torch.ones(1))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hashes.py", "names no function"),
        ("nowhere.py:f", "nowhere.py cannot be imported: FileNotFoundError"),
        ("no_such_module:f", "no_such_module cannot be imported"),
        (f"{HASHES}:nothing", "has no function nothing"),
    ],
)
def test_a_missing_function_is_refused(name: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        load_hash_fn(name)
