"""A recorded launch made again: what it is given, what is expected, and what is said of a difference."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from planted import softmax
from test_store import INFO

from tracing import store
from tracing.analyze import replay
from tracing.analyze.again import kernel_file
from tracing.analyze.replay import ReplayJudge, Tolerance, parameters, replayable, values
from tracing.errors import Problem
from tracing.model import KeptTensor, KernelLaunch
from tracing.record.launches import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.record.reference import interpreted
from tracing.virtual_gpu import virtual_gpu

Recorded = tuple[store.Run, KernelLaunch]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """One launch of softmax on rows that lie 12 elements apart, with what it read and wrote."""
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    x, y = torch.randn(3, 12)[:, 1:11], torch.zeros(3, 12)
    with virtual_gpu("sm_80"), LaunchRecorder(writer, keep=Keep(inputs=True)):
        softmax[(3,)](x, y, 12, 10, BLOCK=16)
    run = store.Run(writer.path)
    return run, next(run.launches())


def kept(run: store.Run, launch: KernelLaunch, side: str) -> dict[str, torch.Tensor]:
    lines = [line for line in run.records(KeptTensor) if line.side == side]
    return {launch.args[line.position].name: load(run.bytes(line.blob)) for line in lines}


def given(recorded: Recorded) -> dict[str, Any]:
    run, launch = recorded
    return values(launch, kept(run, launch, "before"))


def module(recorded: Recorded) -> str:
    return kernel_file(*recorded)


def test_an_input_lies_as_it_lay(recorded: Recorded) -> None:
    x = given(recorded)["x_ptr"]

    assert (x.shape, x.stride(), x.storage_offset()) == ((3, 10), (12, 1), 1)
    assert torch.equal(x, kept(*recorded, "before")["x_ptr"])


def test_the_interpreter_expects_what_the_launch_left(recorded: Recorded) -> None:
    expected = interpreted(recorded[1], module(recorded), given(recorded))

    assert list(expected) == ["y_ptr"]
    assert torch.equal(expected["y_ptr"], kept(*recorded, "after")["y_ptr"])


def test_a_kernel_that_the_interpreter_cannot_execute_has_no_reference(recorded: Recorded) -> None:
    broken = module(recorded).replace("tl.max(x, 0)", "tl.missing(x, 0)")

    with pytest.raises(
        Problem, match=r"cannot be decided, because there is no reference for launch 0: .*missing"
    ):
        interpreted(recorded[1], broken, given(recorded))


def test_an_input_that_was_not_kept_is_said(recorded: Recorded) -> None:
    with pytest.raises(Problem, match="cannot be decided, because input x_ptr of launch 0 was not kept"):
        values(recorded[1], {})


def test_arguments_that_share_written_memory_are_not_replayed(recorded: Recorded) -> None:
    launch = recorded[1]
    shared = [msgspec.structs.replace(arg, storage=1) for arg in launch.args]

    replayable(launch)
    with pytest.raises(Problem, match="cannot be replayed: x_ptr and y_ptr share memory"):
        replayable(msgspec.structs.replace(launch, args=tuple(shared)))


def test_the_driver_is_given_each_parameter_that_the_ptx_takes(recorded: Recorded) -> None:
    run, launch = recorded
    values = given(recorded)

    packed = parameters(run.text(launch.kernel.stages["ptx"]), launch, values)

    assert not isinstance(packed, str), packed
    assert [one.value for one in packed[:4]] == [
        values["x_ptr"].data_ptr(),
        values["y_ptr"].data_ptr(),
        12,
        10,
    ]
    assert {one.value for one in packed[4:]} <= {0}


def test_a_launch_with_other_arguments_than_the_ptx_takes_cannot_be_told(recorded: Recorded) -> None:
    run, launch = recorded
    ptx = run.text(launch.kernel.stages["ptx"])

    few = {name: value for name, value in given(recorded).items() if name == "n"}
    assert "parameters, the launch gave 1" in str(parameters(ptx, launch, few))
    assert parameters(ptx, launch, {**given(recorded), "n": 0.5 + 0j}) == "the PTX takes n as u32"  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [(-1, "u32", 2**32 - 1), (0.5, "f32", 0.5), (True, "u8", 1), (0.5, "b16", None), (None, "u32", None)],
)
def test_a_scalar_is_passed_as_the_ptx_declares_it(value: Any, kind: str, expected: Any) -> None:
    packed = replay._packed(value, kind)

    assert (packed if packed is None else packed.value) == expected


def test_a_difference_beyond_the_tolerance_is_bad_and_says_where(recorded: Recorded) -> None:
    expected = {"y_ptr": torch.zeros(2, 2)}
    judge = ReplayJudge(recorded[1], {}, expected, Tolerance(atol=0.1, rtol=0), "a GPU")

    assert judge.compared({"y_ptr": torch.full((2, 2), 0.05)}).verdict == "good"
    found = judge.compared({"y_ptr": torch.tensor([[0, 0], [0, 0.2]])})
    assert found.verdict == "bad"
    assert "y_ptr: Tensor-likes are not close! Mismatched elements: 1 / 4 (25.0%)" in found.detail


def test_a_judge_is_told_from_one_with_another_expectation(recorded: Recorded) -> None:
    keys = [
        ReplayJudge(recorded[1], {}, {"y_ptr": torch.full((1,), value)}, Tolerance(), "a GPU").key
        for value in (0.0, 1.0, 1.0)
    ]

    assert keys[0] != keys[1] == keys[2]
