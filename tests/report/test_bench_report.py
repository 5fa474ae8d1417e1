"""The table of `tracing bench`."""

from __future__ import annotations

from tracing.model import BackendBench, CaseBench
from tracing.report.bench import bench_text


def test_times_have_three_digits_and_long_ones_no_exponent() -> None:
    eager = BackendBench("eager", (8570.4, 8570.4), verdict="reference")
    compiled = BackendBench("inductor", (2.003, 2.001), 57.84, 0.5, 1, 0, verdict="pass")

    lines = [one.plain for one in bench_text([CaseBench("ssm", "CPU", 0, 0, (eager, compiled))])]

    _, row, other = (line.split() for line in lines if " ± " in line)
    assert row[:6] == ["ssm", "eager", "8570", "±", "0", "8570"]
    assert other[:7] == ["inductor", "2", "±", "0.00141", "2", "4281×", "57.8"]


def test_a_table_says_what_the_times_of_a_cpu_and_violations_mean() -> None:
    on_cpu, on_gpu = (
        [one.plain for one in bench_text([CaseBench("ssm", device, 0, 4, (BackendBench("eager", (1.0,)),))])]
        for device in ("CPU", "NVIDIA H100")
    )

    assert on_cpu[0] == "on the CPU: its times and speedups say nothing about a GPU"
    assert on_gpu[0] == "on the NVIDIA H100"
    assert on_cpu[-1].startswith("violations: nodes of ATen graphs") and "tracing check" in on_cpu[-1]


def test_calls_that_take_unequal_times_are_named_with_the_remedy() -> None:
    lines = [
        one.plain
        for one in bench_text([CaseBench("ssm", "CPU", 0, 0, (BackendBench("eager", (0.2, 70.0)),))])
    ]

    assert lines[-1].startswith("ssm: eager: calls took 0.2 to 70 ms: measure more with --warmup and --runs")


def test_a_small_speedup_is_not_rounded_to_zero() -> None:
    slow = BackendBench("inductor", (50.0,), 1.0, 1.0, 1, 0, verdict="pass")
    case = CaseBench("silu", "CPU", 0, 0, (BackendBench("eager", (0.05,)), slow))

    assert any("0.001×" in one.plain for one in bench_text([case]))
