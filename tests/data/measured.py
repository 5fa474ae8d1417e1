"""A program that measures a kernel by a report, after another kernel has prepared its input."""

import torch
import triton
import triton.language as tl

from tracing import Workload


@triton.jit
def prepare(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), tl.arange(0, BLOCK).to(tl.float32))


@triton.jit
def square(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * tl.load(x_ptr + at))


def measured(n: int, provider: str) -> object:
    x = torch.empty(n)
    prepare[(1,)](x, BLOCK=n)
    return triton.testing.do_bench(lambda: square[(1,)](x, BLOCK=n))


REPORT = triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"], x_vals=[32, 64], line_arg="provider", line_vals=["triton"], line_names=["Triton"],
        plot_name="squares", args={},
    )
)(measured)  # fmt: skip


def build(device: str) -> Workload:
    return Workload(torch.compiler.disable(lambda: REPORT.run()))
