"""The results of a model with two backends, compared one by one."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracing.numerics.heat_map import shaded
from tracing.numerics.tensor_diff import TensorDiff, WorstElement
from tracing.program.state import AFTERWARDS

_WIDTH = 140  # of a summary; a terminal's own where a command prints the report
_DETAILED = 3  # results whose elements are shown
_NUMBERS = ("max abs", "max rel", "rmse", "ulp", "mismatched")


@dataclass(frozen=True, slots=True)
class ResultDiff:
    """One result with both backends: a tensor, a number, a container, or an alias."""

    name: str  # "output['logits']", "grad of weight", "input 0 afterwards"
    problem: str = ""  # difference other than elements: missing, type, shape, strides
    tensor: TensorDiff | None = None  # None: one of the two is no tensor

    @property
    def passed(self) -> bool:
        """True if nothing differs beyond the tolerances."""
        return not self.problem and (self.tensor is None or self.tensor.passed)

    @property
    def is_input(self) -> bool:
        """True if it is an argument of the case, after the call."""
        return self.name.endswith(AFTERWARDS)

    @property
    def equal(self) -> bool:
        """True if nothing differs at all."""
        return self.passed and (self.tensor is None or self.tensor.worst is None)


@dataclass(frozen=True, slots=True)
class KernelDiffReport:
    """All results of a model with two backends."""

    model_name: str
    reference_backend: str
    test_backend: str
    results: tuple[ResultDiff, ...]
    not_compared: tuple[str, ...]  # results that have no equality
    plots: tuple[Path, ...] = ()
    drawn: tuple[str, ...] = ()  # results that differ, and depend on random numbers

    @property
    def passed(self) -> bool:
        """True if at least one result was compared and every result passes."""
        return bool(self.results) and not self.failed

    @property
    def failed(self) -> tuple[ResultDiff, ...]:
        """The results that differ."""
        return tuple(one for one in self.results if not one.passed)

    def summary(self) -> str:
        """The table, and the worst element of each result that differs, as plain text."""
        stream = io.StringIO()
        console = Console(file=stream, width=_WIDTH, highlight=False, markup=False)
        for one in self.rendered():
            console.print(one)
        return stream.getvalue()

    def rendered(self) -> Iterator[Table | Text]:
        """What `summary` shows, for a rich console."""
        verdict = f"{self._counted(self.failed)} differ" if self.failed else "all results agree"
        yield Text(
            f"{self.model_name}: {self.test_backend} against {self.reference_backend}: "
            + (verdict if self.results else "there is no result to compare")
        )
        equal = [one for one in self.results if one.equal]
        if len(equal) < len(self.results):
            yield _table([one for one in self.results if not one.equal])
        if equal:
            yield Text(f"{self._counted(equal)} are equal")
        detailed = [one for one in self.failed if one.tensor is not None and one.tensor.worst is not None]
        for one in detailed[:_DETAILED]:
            yield from map(Text, _details(one))
        if len(detailed) > _DETAILED:
            yield Text(f"{len(detailed) - _DETAILED} more differ: --json has their elements")
        if self.drawn:
            drawn = ", ".join(self.drawn)
            yield Text(f"depend on random numbers, which backends draw otherwise: {drawn}")
            yield Text("  torch._inductor.config.fallback_random = True: Inductor draws those of eager")
        if self.not_compared:
            yield Text(f"not compared: {', '.join(self.not_compared)}")
        yield from (Text(f"heat map: {path}") for path in self.plots)

    def _counted(self, chosen: Sequence[ResultDiff]) -> str:
        # "4 of 5 results and 1 of 1 inputs afterwards": `tracing run` does not count inputs as results
        parts = []
        for noun, is_input in (("results", False), ("inputs afterwards", True)):
            some, every = (sum(one.is_input is is_input for one in ones) for ones in (chosen, self.results))
            if some:
                parts.append(f"{some} of {every} {noun}")
        return " and ".join(parts)

    def json(self) -> dict[str, Any]:
        """The report as plain values; numbers that are not finite are strings."""
        return {
            "model": self.model_name,
            "reference_backend": self.reference_backend,
            "test_backend": self.test_backend,
            "passed": self.passed,
            "results": [result_json(one) for one in self.results],
            "not_compared": [*self.not_compared],
            "drawn": [*self.drawn],
        }


def _table(results: Sequence[ResultDiff]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("result", overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for one in results:
        table.add_row(Text(one.name), *map(Text, _cells(one.tensor)), Text(_verdict(one)))
    return table


def table_rows(report: KernelDiffReport) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The columns and the rows of a report's table; equal results are in it."""
    rows = ((one.name, *_cells(one.tensor), _verdict(one)) for one in report.results)
    return ("result", *_NUMBERS, "verdict"), tuple(rows)


def result_json(result: ResultDiff) -> dict[str, Any]:
    """One result as plain values."""
    diff = result.tensor
    given: dict[str, Any] = {"name": result.name, "passed": result.passed, "problem": result.problem}
    if diff is None or diff.problem:
        return given | ({"problem": diff.problem} if diff is not None and not result.problem else {})
    given |= {
        "elements": diff.elements,
        "mismatched": diff.mismatched,
        "max_absolute_error": _plain(diff.max_absolute_error),
        "mean_absolute_error": _plain(diff.mean_absolute_error),
        "max_relative_error": _plain(diff.max_relative_error),
        "mean_relative_error": _plain(diff.mean_relative_error),
        "rmse": _plain(diff.rmse),
        "max_ulp": None if diff.max_ulp is None else _plain(diff.max_ulp),
        "cosine": _plain(diff.cosine),
        "criteria": [
            {"name": c.name, "measured": _plain(c.measured), "allowed": _plain(c.allowed), "passed": c.passed}
            for c in diff.criteria
        ],
        "heat": [[_plain(value) for value in row] for row in diff.heat],
    }
    if diff.worst is not None:
        worst = diff.worst
        given["worst"] = {"index": worst.index, "actual": str(worst.actual), "expected": str(worst.expected)}
    return given


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _cells(diff: TensorDiff | None) -> list[str]:
    if diff is None or diff.problem or not diff.elements:
        return [""] * len(_NUMBERS)
    errors = (diff.max_absolute_error, diff.max_relative_error, diff.rmse)
    ulp = "" if diff.max_ulp is None else f"{diff.max_ulp:.3g}"
    return [*(f"{one:.1e}" for one in errors), ulp, f"{diff.mismatch_percentage:.3g} %"]


def _verdict(result: ResultDiff) -> str:
    if result.passed:
        return "pass"
    tensor = result.tensor
    causes = [result.problem, *([tensor.problem, *(c.name for c in tensor.failed())] if tensor else [])]
    return "differs: " + ", ".join(one for one in causes if one)


def _details(result: ResultDiff) -> Iterator[str]:
    diff = result.tensor
    if diff is None or diff.worst is None or not diff.failed():
        return
    yield f"{result.name}: {diff.mismatched} of {diff.elements} elements are beyond the tolerance"
    means = f"{diff.mean_absolute_error:.3g}, relative {diff.mean_relative_error:.3g}"
    yield f"    errors    mean {means}; cosine similarity {diff.cosine:.6f}"
    for one in diff.failed():
        yield f"    {one.name:<8}  {one.measured:.6g}, allowed {one.allowed:.6g}"
    yield from _worst(diff.worst)
    yield "    largest errors"
    yield from (f"    |{line}|" for line in shaded(diff.heat))


def _worst(worst: WorstElement) -> Iterator[str]:
    index = ", ".join(map(str, worst.index))
    yield f"    worst     [{index}] is {worst.actual:.9g} instead of {worst.expected:.9g}"
    for name, rows in (("actual", worst.around_actual), ("expected", worst.around_expected)):
        for i, row in enumerate(rows):
            yield f"    {name if not i else '':<8}  " + " ".join(f"{value:>12.6g}" for value in row)
