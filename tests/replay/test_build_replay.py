"""A recorded launch executed with a given binary: its arguments, and the verdict on its results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
import torch
from handmade.records import INFO
from recorded.kernels import softmax

from tracing import store
from tracing.errors import Problem
from tracing.model import KeptTensor
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep, load
from tracing.replay import cuda_binary
from tracing.replay.arguments import ReplayInputs, Tensors, layout_of, memory_of, tensors_over
from tracing.replay.build_replay import BuildReplay, Tolerance, require_inputs, require_launchable
from tracing.replay.cuda_binary import parameters
from tracing.replay.reference import reference
from tracing.store.recorded_launch import RecordedLaunch, recorded_launch
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedLaunch:
    """One launch of softmax on rows with a stride of 12 elements, with its inputs and outputs."""
    writer = store.create(tmp_path_factory.mktemp("runs"), INFO)
    x, y = torch.randn(3, 12)[:, 1:11], torch.zeros(3, 12)
    with virtual_gpu("sm_80"), LaunchRecorder(writer, keep=Keep(inputs=True)):
        softmax[(3,)](x, y, 12, 10, BLOCK=16)
    return recorded_launch(store.Run(writer.path), 0)


def kept(one: RecordedLaunch, side: str) -> Tensors:
    lines = [line for line in one.run.records(KeptTensor) if line.side == side]
    return {one.launch.args[line.position].name: load(one.run.bytes(line.blob)) for line in lines}


def given(one: RecordedLaunch) -> dict[str, Any]:
    inputs = ReplayInputs.of(one)
    return inputs.arguments(inputs.tensors(inputs.memory("cpu")))


def ptx(one: RecordedLaunch) -> str:
    return one.run.text(one.launch.kernel.stages["ptx"])


def test_an_input_keeps_its_layout_with_a_page_before_it(recorded: RecordedLaunch) -> None:
    x = given(recorded)["x_ptr"]

    assert (x.shape, x.stride(), x.storage_offset()) == ((3, 10), (12, 1), 4096 // 4 + 1)
    assert torch.equal(x, kept(recorded, "before")["x_ptr"])


def test_arguments_that_shared_memory_share_it_in_the_replay(recorded: RecordedLaunch) -> None:
    x, *others = recorded.launch.args
    assert x.tensor is not None
    meta = msgspec.structs.replace(x.tensor, offset=x.tensor.offset + 5000)
    far = msgspec.structs.replace(x, name="far", tensor=meta)
    layout = layout_of(msgspec.structs.replace(recorded.launch, args=(x, far, *others)))

    tensors = tensors_over(layout, memory_of(layout, {}, 0, "cpu"))

    assert tensors["far"].data_ptr() - tensors["x_ptr"].data_ptr() == 5000 * 4
    assert layout.storages[layout.tensors["far"].storage] == (5000 + 1 + 2 * 12 + 10) * 4 + 2 * 4096


def test_the_interpreter_computes_the_results_of_the_launch(recorded: RecordedLaunch) -> None:
    expected = reference(recorded)

    assert list(expected) == ["y_ptr"]
    assert torch.equal(expected["y_ptr"], kept(recorded, "after")["y_ptr"])


def test_a_kernel_that_the_interpreter_cannot_execute_has_no_reference(recorded: RecordedLaunch) -> None:
    broken = replace(recorded, module=recorded.module.replace("tl.max(x, 0)", "tl.missing(x, 0)"))

    with pytest.raises(Problem, match="missing"):
        reference(broken)


def test_an_input_that_was_not_kept_is_reported(recorded: RecordedLaunch) -> None:
    require_inputs(recorded)
    with pytest.raises(Problem, match="cannot be decided, because input x_ptr of launch 0 was not kept"):
        require_inputs(replace(recorded, missing=("x_ptr",)))


def test_a_kernel_whose_blocks_form_clusters_is_not_launched(recorded: RecordedLaunch) -> None:
    launch = recorded.launch
    kernel = msgspec.structs.replace(launch.kernel, num_ctas=2)

    require_launchable(launch)
    with pytest.raises(Problem, match="launch 0 cannot be replayed: its blocks form clusters"):
        require_launchable(msgspec.structs.replace(launch, kernel=kernel))


def test_the_driver_receives_each_parameter_that_the_ptx_declares(recorded: RecordedLaunch) -> None:
    values = given(recorded)

    packed = parameters(ptx(recorded), values)

    assert not isinstance(packed, str), packed
    assert [one.value for one in packed[:4]] == [
        values["x_ptr"].data_ptr(),
        values["y_ptr"].data_ptr(),
        12,
        10,
    ]
    assert {one.value for one in packed[4:]} <= {0}


def test_a_launch_whose_arguments_do_not_match_the_ptx_is_skipped(recorded: RecordedLaunch) -> None:
    values = given(recorded)

    few = {name: value for name, value in values.items() if name == "n"}
    assert "parameters, the launch gave 1" in str(parameters(ptx(recorded), few))
    other = {**values, "n": 0.5 + 0j}
    assert parameters(ptx(recorded), other) == "the PTX takes n as u32"


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [(-1, "u32", 2**32 - 1), (0.5, "f32", 0.5), (True, "u8", 1), (0.5, "b16", None), (None, "u32", None)],
)
def test_a_scalar_is_passed_as_the_ptx_declares_it(value: Any, kind: str, expected: Any) -> None:
    packed = cuda_binary._packed(value, kind)

    assert (packed if packed is None else packed.value) == expected


def test_a_difference_beyond_the_tolerance_is_bad_and_reports_the_element(recorded: RecordedLaunch) -> None:
    replay = BuildReplay(recorded, {"y_ptr": torch.zeros(2, 2)}, Tolerance(atol=0.1, rtol=0), "a GPU")

    assert replay.compared({"y_ptr": torch.full((2, 2), 0.05)})[0] == "good"
    verdict, detail = replay.compared({"y_ptr": torch.tensor([[0, 0], [0, 0.2]])})
    assert verdict == "bad"
    assert "y_ptr: Tensor-likes are not close! Mismatched elements: 1 / 4 (25.0%)" in detail


def test_judges_with_different_expectations_have_different_identities(recorded: RecordedLaunch) -> None:
    keys = [
        BuildReplay(recorded, {"y_ptr": torch.full((1,), value)}, Tolerance(), "a GPU").key
        for value in (0.0, 1.0, 1.0)
    ]

    assert keys[0] != keys[1] == keys[2]
