"""DebugMode keeps the promises of its guides: their samples on the virtual GPU, and cases that they omit."""

# ruff: noqa: SIM117  (samples are copied from the guides)

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import tracing
from tracing import DebugMode
from tracing import TritonKernelCall as _TritonKernelCall  # as the guides call it
from tracing.errors import Problem
from tracing.model import OperatorSignature
from tracing.virtual_gpu import virtual_gpu


@pytest.fixture(autouse=True, scope="module")
def gpu(private_caches: None) -> Iterator[None]:
    with virtual_gpu():
        yield


@pytest.fixture(scope="module")
def compiled_fn(gpu: None) -> Any:
    return torch.compile(lambda x, y: x + y * 2)


@triton.jit
def scale_kernel(x_ptr, BLOCK: tl.constexpr, out_ptr, n):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, offsets < n) * 2, offsets < n)


@pytest.fixture
def x() -> Any:
    return torch.randn(16, 16)


@pytest.fixture
def y() -> Any:
    return torch.randn(16, 16)


def triton_calls(debug_mode: Any) -> list[Any]:
    return [op for op in debug_mode.operators if isinstance(op, _TritonKernelCall)]


def test_stacks_have_lines_of_the_program_and_none_of_this_project() -> None:
    with DebugMode(record_stack_trace=True) as debug_mode:
        x = torch.ones(3, device="cuda", requires_grad=True)
        (x * 2).sum().backward()

    shown = [line for line in debug_mode.debug_string().splitlines() if "# File: " in line]
    assert shown and all(f"# File: {__file__}:" in line for line in shown)
    package = str(Path(tracing.__file__).parent)
    assert all(package not in (op.stack_trace or "") for op in debug_mode.operators)


# ---- the guide of Triton kernel tracking ----


def test_basic_argument_tracking(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode(record_triton_kernels=True, store_original_args=True) as debug_mode:
        compiled_fn(x, y)
    calls = [op for op in debug_mode.operators if isinstance(op, _TritonKernelCall)]
    shown = []
    for call in calls:
        for _i, (name, arg) in enumerate(zip(call.arg_names, call.args, strict=True)):
            if isinstance(arg, torch.Tensor):
                shown.append(f"{name}: tensor {arg.shape} {arg.dtype}")
            else:
                shown.append(f"{name}: {arg}")

    assert (calls[0].kernel_name, calls[0].grid) == ("triton_poi_fused_add_mul_0", (1, 1, 1))
    tensors = [
        f"{name}: tensor torch.Size([16, 16]) torch.float32" for name in ("in_ptr0", "in_ptr1", "out_ptr0")
    ]
    assert shown == [*tensors, "xnumel: 256"]


def test_input_and_output_detection_with_hashing(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode(record_triton_kernels=True, store_original_args=True) as debug_mode:
        with DebugMode.log_tensor_hashes():
            compiled_fn(x, y)
    (call,) = triton_calls(debug_mode)

    assert [(idx, call.arg_names[idx]) for idx in call.modified_args] == [(2, "out_ptr0")]
    assert set(call.pre_hashes) == set(call.post_hashes) == {0, 1, 2}
    assert [i for i in range(2) if call.pre_hashes[i] != call.post_hashes[i]] == []


def test_rendered_output_with_annotations(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode(record_triton_kernels=True, store_original_args=True) as debug_mode:
        with DebugMode.log_tensor_hashes():
            compiled_fn(x, y)
    (call,) = triton_calls(debug_mode)
    expected = """[Triton] triton_poi_fused_add_mul_0[grid=(1, 1, 1)](
    in_ptr0=t: f32[16, 16],
    in_ptr1=t: f32[16, 16],
    [OUT] out_ptr0=t: f32[16, 16],
    xnumel=256
)  # {'outputs': ['out_ptr0'], 'pre_hashes': {0: '"""

    assert call.render([]).startswith(expected)
    assert "'post_hashes': {0: '" in call.render([])


def test_debugging_nondeterminism(x: Any, y: Any) -> None:
    function = torch.compile(lambda x, y: torch.softmax((x + y) @ x, -1))
    inputs, grad_outputs = [x.requires_grad_(), y.requires_grad_()], torch.ones(16, 16)
    with DebugMode(record_triton_kernels=True, store_original_args=True) as debug_mode1:
        with DebugMode.log_tensor_hashes():
            torch.autograd.grad(function(*inputs), inputs, grad_outputs)
    torch._dynamo.reset()
    with torch._inductor.utils.fresh_inductor_cache():
        with DebugMode(record_triton_kernels=True, store_original_args=True) as debug_mode2:
            with DebugMode.log_tensor_hashes():
                torch.autograd.grad(function(*inputs), inputs, grad_outputs)
    calls1, calls2 = triton_calls(debug_mode1), triton_calls(debug_mode2)

    assert len(calls1) >= 3  # of the forward and of the backward
    assert [(c.kernel_name, c.grid) for c in calls1] == [(c.kernel_name, c.grid) for c in calls2]
    assert [c.post_hashes for c in calls1] == [c.post_hashes for c in calls2]
    assert all(set(c.pre_hashes) == set(c.post_hashes) for c in calls1)


def test_a_kernel_call_has_the_documented_attributes(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode() as debug_mode, DebugMode.log_tensor_hashes():
        compiled_fn(x, y)
    (call,) = triton_calls(debug_mode)

    assert call.args == (*["t: f32[16, 16]"] * 3, 256)
    assert (call.kwargs, call.record, call.log) == ({}, {}, {"hash": [call.post_hashes[2]]})
    assert call.arg_names == ("in_ptr0", "in_ptr1", "out_ptr0", "xnumel")


def test_quick_output_check_and_audit_of_all_kernels(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode(record_triton_kernels=True) as dm:
        with DebugMode.log_tensor_hashes():
            compiled_fn(x, y)
    (call,) = [op for op in dm.operators if isinstance(op, _TritonKernelCall)]
    inputs = [i for i in call.pre_hashes if i not in call.modified_args]

    assert [call.arg_names[i] for i in call.modified_args] == ["out_ptr0"]
    assert (len(inputs), len(call.modified_args)) == (2, 1)


def test_finding_a_kernel_with_a_different_input(compiled_fn: Any, x: Any, y: Any) -> None:
    calls = []
    for second in (y, y + 1):
        with DebugMode() as debug_mode, DebugMode.log_tensor_hashes():
            compiled_fn(x, second)
        calls += triton_calls(debug_mode)
    c1, c2 = calls

    assert next(c1.arg_names[j] for j in c1.pre_hashes if c1.pre_hashes[j] != c2.pre_hashes[j]) == "in_ptr1"
    assert c1.post_hashes[2] != c2.post_hashes[2]


# ---- the guide of recording outputs ----


def test_recorded_outputs_are_clones(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode() as debug_mode:
        with DebugMode.record_outputs():
            result = compiled_fn(x, y)
    expected = result.clone()
    result.zero_()
    outputs = [
        out
        for call in debug_mode.operators
        if hasattr(call, "record") and call.record
        for out in call.record.get("output")
    ]

    assert torch.equal(outputs[0], expected)
    assert len(outputs) == 1


def test_hashes_are_in_the_debug_string(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode() as debug_mode:
        with DebugMode.log_tensor_hashes():
            compiled_fn(x, y)
            x.cos()
    text = debug_mode.debug_string()

    assert text.startswith("    [Triton] triton_poi_fused_add_mul_0[grid=(1, 1, 1)](\n        in_ptr0=t: f32")
    assert "\n    )  # {'outputs': ['out_ptr0'], 'pre_hashes'" in text
    assert f"'hash': ['{triton_calls(debug_mode)[0].post_hashes[2]}']" in text
    assert "\n    aten::cos(t: f32[16, 16])  ->  t: f32[16, 16]  # {'hash': " in text


def test_a_custom_hash_function(compiled_fn: Any, x: Any, y: Any) -> None:
    def my_hash_fn(tensor: Any) -> Any:
        return tensor.abs().sum().item()

    with DebugMode() as debug_mode:
        with DebugMode.log_tensor_hashes(hash_fn=my_hash_fn):
            result = compiled_fn(x, y)

    assert [op.log for op in debug_mode.operators] == [{"hash": [my_hash_fn(result)]}]


def test_hashes_of_inputs_and_outputs(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode() as debug_mode:
        with DebugMode.log_tensor_hashes(hash_inputs=True):
            compiled_fn(x, y)
            compiled_fn(x, y)
    first, second = triton_calls(debug_mode)

    assert first.log == second.log
    assert first.log["input_hash"] == [first.pre_hashes[0], first.pre_hashes[1]]
    assert first.log["hash"] == [first.post_hashes[2]]


def test_a_log_of_metadata_only_is_short(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode() as debug_mode:
        compiled_fn(x, y)
    (call,) = debug_mode.operators

    assert (call.pre_hashes, call.post_hashes, call.log, call.record) == ({}, {}, {}, {})
    assert call.render([]).endswith("[OUT] out_ptr0=t: f32[16, 16],\n    xnumel=256\n)")


# ---- cases that the guides omit ----


def test_a_constant_between_the_arguments_shifts_no_name(x: Any) -> None:
    out = torch.empty_like(x)
    with DebugMode(store_original_args=True) as debug_mode, DebugMode.log_tensor_hashes():
        scale_kernel[(4,)](x, 64, out, 256)
    (call,) = triton_calls(debug_mode)

    assert dict(zip(call.arg_names, call.args, strict=True)) == {"x_ptr": x, "out_ptr": out, "n": 256}
    assert (call.kernel_name, call.grid, call.modified_args) == ("scale_kernel", (4, 1, 1), {1})


def test_a_constant_between_the_arguments_inside_a_compiled_function(x: Any) -> None:
    @torch.compile(fullgraph=True)
    def scaled(x: Any) -> Any:
        out = torch.empty_like(x)
        scale_kernel[(4,)](x, 64, out, 256)
        return out

    with DebugMode() as debug_mode, DebugMode.log_tensor_hashes():
        actual = scaled(x)
    (call,) = triton_calls(debug_mode)

    assert torch.equal(actual, x * 2)
    assert (call.arg_names[:2], call.grid, call.modified_args) == (("x_ptr", "out_ptr"), (4, 1, 1), {1})


@pytest.mark.parametrize("hash_fn", [None, "norm", "hash_tensor", ["norm", "hash_tensor"]])
def test_equal_runs_with_a_nan_mark_only_what_was_written(hash_fn: Any, x: Any) -> None:
    x[0, 0], out = float("nan"), torch.zeros(16, 16)
    with DebugMode() as debug_mode, DebugMode.log_tensor_hashes(hash_fn):
        scale_kernel[(4,)](x, 64, out, 256)
        scale_kernel[(4,)](x, 64, out, 256)
    first, second = triton_calls(debug_mode)

    assert repr(first.log) == repr(second.log)
    assert first.modified_args == second.modified_args == {1}


def test_the_digest_of_a_nan_equals_itself(x: Any) -> None:
    x[0, 0] = float("nan")
    with DebugMode() as debug_mode, DebugMode.log_tensor_hashes():
        scale_kernel[(4,)](x, 64, torch.empty_like(x), 256)
        scale_kernel[(4,)](x, 64, torch.empty_like(x), 256)
    first, second = triton_calls(debug_mode)

    assert first.post_hashes == second.post_hashes


def test_rewriting_the_same_bytes_is_a_modification(x: Any) -> None:
    out = x * 2
    with DebugMode() as debug_mode, DebugMode.log_tensor_hashes():
        scale_kernel[(4,)](x, 64, out, 256)
    (call,) = triton_calls(debug_mode)

    assert call.pre_hashes == call.post_hashes
    assert call.modified_args == {1}


def test_recording_adds_no_operator_of_its_own(x: Any, y: Any) -> None:
    function = torch.compile(lambda x, y: torch.softmax((x + y) @ x, -1))
    function(x, y)
    with DebugMode() as plain:
        function(x, y).cos()
    with DebugMode() as hashed, DebugMode.log_tensor_hashes(hash_inputs=True), DebugMode.record_outputs():
        function(x, y).cos()

    names = [getattr(op, "kernel_name", None) or str(op.op) for op in plain.operators]
    assert [getattr(op, "kernel_name", None) or str(op.op) for op in hashed.operators] == names
    assert names[1::2] == ["aten.mm.out", "aten.cos.default"]


def broken(tensor: Any) -> Any:
    raise ZeroDivisionError("no such hash")


@pytest.mark.parametrize(
    ("hash_fn", "message"),
    [(broken, r"ZeroDivisionError: no such hash (test_debug_mode.py:"), (torch.neg, "a Tensor")],
)
def test_a_hash_function_that_fails_is_reported_at_the_end(
    compiled_fn: Any, hash_fn: Any, message: str
) -> None:
    x, y, results = torch.ones(4), torch.ones(4), []
    mode = DebugMode()
    with pytest.raises(Problem, match=re.escape(message)), mode, DebugMode.log_tensor_hashes(hash_fn):
        results += [compiled_fn(x, y), x.cos()]

    assert torch.equal(results[0], torch.full((4,), 3.0)) and torch.equal(results[1], x.cos())
    assert [message in op.log["hash_error"] for op in mode.operators] == [True, True]


def test_an_exception_of_the_program_is_not_hidden_by_a_failed_hash(x: Any) -> None:
    with pytest.raises(KeyError), DebugMode(), DebugMode.log_tensor_hashes(broken):
        x.cos()
        raise KeyError


def test_triton_kernels_can_be_left_out(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode(record_triton_kernels=False) as debug_mode:
        compiled_fn(x, y)
        x.cos()

    assert [str(op.op) for op in debug_mode.operators] == ["aten.cos.default"]


def test_hashes_requested_outside_of_the_mode_are_computed(compiled_fn: Any, x: Any, y: Any) -> None:
    with DebugMode.log_tensor_hashes(), DebugMode() as debug_mode:
        compiled_fn(x, y)
    with DebugMode() as later:
        compiled_fn(x, y)

    assert triton_calls(debug_mode)[0].post_hashes and not triton_calls(later)[0].post_hashes


def test_a_recording_does_not_see_what_is_hashed(tmp_path: Path) -> None:
    product = torch.compile(lambda x, w: (x @ w).relu())  # generated code passes the memory of the product

    with tracing.recording(runs=tmp_path, passes=False, operators="writers") as run:
        with DebugMode() as debug_mode, DebugMode.log_tensor_hashes(hash_inputs=True):
            product(torch.ones(8, 8), torch.ones(8, 8))

    assert any("input_hash" in (op.log or {}) for op in debug_mode.operators)
    names = {one.name for one in run.records(OperatorSignature)}
    assert any(name.startswith("aten::mm") for name in names) and "aten::linalg_vector_norm" not in names


def test_torch_compares_what_two_runs_logged(compiled_fn: Any, x: Any, y: Any) -> None:
    logs = []
    for first in (x, x, x + 1):
        with DebugMode() as debug_mode, DebugMode.log_tensor_hashes("norm"):
            compiled_fn(first, y)
        logs.append(debug_mode.logs)

    assert DebugMode.check_hash_mismatches(logs[0], logs[1]) == []
    assert [d["arg_name"] for d in DebugMode.check_hash_mismatches(logs[0], logs[2])] == [0, 2]


def test_importing_tracing_imports_no_torch() -> None:
    subprocess.check_call([sys.executable, "-c", "import sys, tracing; assert 'torch' not in sys.modules"])
