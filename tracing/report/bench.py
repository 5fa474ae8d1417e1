"""Measured cases as a table and as JSON."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracing.model import BackendBench, CaseBench

_WIDTH = 150  # columns of the table; a narrower terminal wraps its lines
_UNEQUAL = 0.25  # of the mean: a larger standard deviation makes times hardly comparable
_STEADIER = "measure more with --warmup and --runs, on an idle machine"
_VIOLATIONS = (
    "nodes of ATen graphs that the accelerator of mock_backend could not run; `tracing check CASE` lists them"
)
_NUMBERS = ("mean ± std ms", "median ms", "speedup", "cold s", "warm s", "graphs", "breaks")


def bench_text(cases: Sequence[CaseBench]) -> Iterator[Text]:
    """A row for each case, with a line for each backend; then unmeasured cases, and a legend.

    The first backend is the reference of speedup and results.
    """
    measured = [one for one in cases if one.backends]
    if measured:
        console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, markup=False)
        with console.capture() as capture:
            console.print(_table(measured))
        yield device_text(measured[0].device)
        yield from (Text(line.rstrip()) for line in capture.get().splitlines())
    yield from remarks_text(cases)


def device_text(device: str) -> Text:
    """The device that was measured, and on a CPU what its times do not say."""
    unlike = ": its times and speedups say nothing about a GPU" if device == "CPU" else ""
    return Text(f"on the {device}{unlike}")


def remarks_text(cases: Sequence[CaseBench]) -> Iterator[Text]:
    """What violations are, unmeasured cases, calls that took unequal times, and how results differ."""
    if any(case.violations for case in cases):
        yield Text(f"violations: {_VIOLATIONS}")
    for case in cases:
        yield from _remarks(case)


def _table(cases: Sequence[CaseBench]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
    table.add_column("case", no_wrap=True)
    table.add_column("backend", no_wrap=True)
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("results", no_wrap=True)
    table.add_column("violations", justify="right")
    for case in cases:
        columns = zip(*(_cells(one, case.backends[0]) for one in case.backends), strict=True)
        lines = [Text("\n".join(column)) for column in columns]
        table.add_row(Text(case.case), *lines, Text(str(case.violations)))
    return table


def bench_rows(cases: Sequence[CaseBench]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The columns and the rows of the table, a row for each backend of each case."""
    rows = (
        (case.case, *_cells(one, case.backends[0]), str(case.violations))
        for case in cases
        for one in case.backends
    )
    return ("case", "backend", *_NUMBERS, "results", "violations"), tuple(rows)


def _remarks(case: CaseBench) -> Iterator[Text]:
    if case.failure:
        yield Text.assemble((f"{case.case}: not measured: ", "bold"), case.failure)
        yield Text(f"  {case.remedy}")
    for one in case.backends:
        if one.std_ms > _UNEQUAL * one.mean_ms:
            least, most = map(_digits, (min(one.latencies_ms), max(one.latencies_ms)))
            yield Text(f"{case.case}: {one.backend}: calls took {least} to {most} ms: {_STEADIER}")
        if one.detail:
            yield Text(f"{case.case}: {one.backend}: {one.detail}")


def _cells(one: BackendBench, reference: BackendBench) -> list[str]:
    compiled = one.cold_s is not None
    return [
        one.backend,
        f"{_digits(one.mean_ms)} ± {_digits(one.std_ms)}",
        _digits(one.median_ms),
        "" if one is reference else f"{_digits(reference.median_ms / one.median_ms)}×",
        _seconds(one.cold_s),
        _seconds(one.warm_s),
        str(one.graphs) if compiled else "",
        str(one.breaks) if compiled else "",
        one.verdict,
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else _digits(value)


def _digits(value: float) -> str:
    # three significant digits; large numbers keep all their digits instead of an exponent
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def bench_json(cases: Sequence[CaseBench], *, interrupted: bool, status: int) -> dict[str, Any]:
    """The object of `tracing bench --json`."""
    return {"status": status, "interrupted": interrupted, "cases": [_case_json(one) for one in cases]}


def _case_json(case: CaseBench) -> dict[str, Any]:
    return {
        "case": case.case,
        "device": case.device,
        "parameters": case.parameters,
        "violations": case.violations,
        "failure": case.failure,
        "backends": [_backend_json(one, case.backends[0]) for one in case.backends],
    }


def _backend_json(one: BackendBench, reference: BackendBench) -> dict[str, Any]:
    return {
        "backend": one.backend,
        "latencies_ms": [*one.latencies_ms],
        "mean_ms": one.mean_ms,
        "std_ms": one.std_ms,
        "median_ms": one.median_ms,
        "speedup": reference.median_ms / one.median_ms,
        "cold_s": one.cold_s,
        "warm_s": one.warm_s,
        "graphs": one.graphs,
        "breaks": one.breaks,
        "verdict": one.verdict,
        "detail": one.detail,
    }
