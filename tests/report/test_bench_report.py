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
    assert other[:7] == ["inductor", "2", "±", "0.00141", "2", "4280.92×", "57.8"]
