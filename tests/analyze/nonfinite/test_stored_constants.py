"""A NaN or inf that is a constant of a kernel's code, as in a mask, is not taken for one that it computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from msgspec.structs import replace

from tracing import store
from tracing.analyze.nonfinite.first_nonfinite import first_nonfinite
from tracing.analyze.nonfinite.stored_constants import Share, stored_constants
from tracing.cli.compare.nan import commands_of_nan
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.report.nonfinite import nonfinite_text
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def masked(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.where(i < 9, tl.load(x_ptr + i), float("-inf")))


@triton.jit
def masked_half(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.where(tl.load(x_ptr + i) * i > 9, 1.0, float("-inf")).to(tl.float16))


@triton.jit
def out_of_the_mask(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < 9, other=float("nan")))


@triton.jit
def scaled(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.where(i < 9, tl.load(x_ptr + i) * 2, float("-inf")))


@triton.jit
def added(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.where(i < 9, 0.0, float("-inf")))


@triton.jit
def overflowing(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i) * 1000))


@triton.jit
def rounded(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, (tl.load(x_ptr + i) * 70000).to(tl.float16))


@triton.jit
def divided_by_a_masked_sum(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.where(i < 0, tl.load(x_ptr + i), float("-inf"))
    tl.store(out_ptr + i, tl.exp(x - tl.max(x, 0)))


@pytest.mark.parametrize(
    ("kernel", "dtype", "verb"),
    [
        (masked, torch.float32, "passes"),
        (masked_half, torch.float16, "passes"),
        (out_of_the_mask, torch.float32, "passes"),
        (scaled, torch.float32, "may make"),
        (added, torch.float32, "may make"),
        (overflowing, torch.float32, "makes"),
        (rounded, torch.float16, "makes"),
        (divided_by_a_masked_sum, torch.float32, "makes"),
    ],
)
def test_a_constant_is_passed_on_and_a_computed_value_is_made(
    tmp_path: Path, kernel: Any, dtype: torch.dtype, verb: str
) -> None:
    writer = store.create(tmp_path, replace(INFO, operators="digests"))
    with virtual_gpu(), LaunchRecorder(writer, operators="digests"):
        kernel[(1,)](torch.ones(16), torch.zeros(16, dtype=dtype))
    run = store.Run(writer.path)

    answer = first_nonfinite(run)

    assert answer.origin is not None and answer.origin.verb == verb
    assert answer.status == (2 if verb == "may make" else 1)
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert ("it stores a constant" in text) == (verb != "makes")
    without_nan = [one for one in commands_of_nan(run, answer) if one.endswith("--kind nan")]
    assert bool(without_nan) == (kernel not in (out_of_the_mask, divided_by_a_masked_sum))


@triton.jit
def limited(x_ptr, out_ptr, limit):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.minimum(tl.load(x_ptr + i) * 1e38 * 1e38, limit))


@triton.jit
def compared(x_ptr, out_ptr, limit):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i) * 1e38 * 1e38
    tl.store(out_ptr + i, tl.where(i < limit, x, 0.0))


@triton.jit
def filled(x_ptr, out_ptr, limit):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.where(i < 9, tl.load(x_ptr + i), limit))


@pytest.mark.parametrize(
    ("kernel", "verb"), [(limited, "may make"), (compared, "may make"), (filled, "passes")]
)
def test_a_number_that_a_kernel_is_called_with_is_passed_on_only_if_the_kernel_stores_it(
    tmp_path: Path, kernel: Any, verb: str
) -> None:
    writer = store.create(tmp_path, replace(INFO, operators="digests"))
    with virtual_gpu(), LaunchRecorder(writer, operators="digests"):
        kernel[(1,)](torch.ones(16), torch.zeros(16), float("inf"))

    answer = first_nonfinite(store.Run(writer.path))

    assert answer.origin is not None
    assert (answer.origin.verb, answer.status) == (verb, 2 if verb == "may make" else 1)
    text = "\n".join(line.plain for line in nonfinite_text(answer, {}, []))
    assert "it is called with limit=inf" in text and ("not certain" in text) == (verb == "may make")


KERNEL = """
module {{
  tt.func private @other(%v: f32) -> f32 {{
    %x = arith.constant 0xFF800000 : f32
    tt.return %x : f32
  }}
  tt.func public @kernel(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %n: f32) attributes {{noinline = false}} {{
    %c = arith.constant {constant}
    {lines}
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("constant", "lines", "kind", "share"),
    [
        ("0xFF800000 : f32", "tt.store %a, %c : !tt.ptr<f32>", "inf", "all"),
        ("0xFF800000 : f32", "tt.store %a, %c : !tt.ptr<f32>", "nan", "none"),
        ("0x7FC00000 : f32", "tt.store %a, %c : !tt.ptr<f32>", "nan", "all"),
        ("0x7F80 : bf16", "tt.store %a, %c : !tt.ptr<bf16>", "inf", "all"),
        ("dense<0xFC00> : tensor<2x8xf16>", "tt.store %a, %c : tensor<2x8x!tt.ptr<f16>>", "inf", "all"),
        ("1.000000e+30 : f32", "tt.store %a, %c : !tt.ptr<f32>", "inf", "none"),
        ("0xFF800000 : f32", "tt.store %b, %c : !tt.ptr<f32>", "inf", "none"),
        ("0xFF800000 : f32", "%p = tt.int_to_ptr %n : i64 -> !tt.ptr<f32>\n tt.store %p, %c", "inf", "all"),
        ("0xFF800000 : f32", "%r = tt.call @other(%c) : (f32) -> f32\n    tt.store %a, %r", "inf", "none"),
        (
            "0xFF800000 : f32",
            "%p = tt.bitcast %b : !tt.ptr<i32> -> !tt.ptr<f32>\n    %x = tt.load %p : !tt.ptr<f32>\n"
            "    %y = arith.select %n, %x, %c : f32\n    tt.store %a, %y : !tt.ptr<f32>",
            "inf",
            "some",
        ),
    ],
)
def test_only_values_that_reach_the_argument_unchanged_are_constants(
    constant: str, lines: str, kind: Any, share: Share
) -> None:
    assert stored_constants(KERNEL.format(constant=constant, lines=lines), "a", kind) == share


@pytest.mark.parametrize(
    ("line", "share"),
    [("tt.store", "none"), ("%x = tt.load", "none"), ("%c = arith.select %c\n tt.store %a, %c", "none")],
)
def test_damaged_text_is_read(line: str, share: Share) -> None:
    text = KERNEL.format(constant="0xFF800000 : f32", lines=line)

    assert stored_constants(text, "a", "inf") == share
