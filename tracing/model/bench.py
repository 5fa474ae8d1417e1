"""Measurements of a case with several backends of torch.compile."""

from __future__ import annotations

import statistics
from typing import Literal

from tracing.model.record import Record


class BackendBench(Record, frozen=True):
    """A case with one backend."""

    backend: str
    latencies_ms: tuple[float, ...]  # of each measured call, after those that warm up
    cold_s: float | None = None  # the first call with empty caches; None: nothing is compiled
    warm_s: float | None = None  # the first call of a new compile that finds the caches of the first
    graphs: int = 0
    breaks: int = 0  # lines at which graphs break
    verdict: Literal["reference", "pass", "differs"] = "reference"  # results against the first backend's
    detail: str = ""  # of the verdict

    @property
    def mean_ms(self) -> float:
        """The mean of the latencies."""
        return statistics.fmean(self.latencies_ms)

    @property
    def std_ms(self) -> float:
        """Their standard deviation; 0 of one call."""
        return statistics.stdev(self.latencies_ms) if len(self.latencies_ms) > 1 else 0.0

    @property
    def median_ms(self) -> float:
        """Their median."""
        return statistics.median(self.latencies_ms)


class CaseBench(Record, frozen=True):
    """A case with each backend, or why it was not measured."""

    case: str
    device: str
    parameters: int = 0  # numbers in the parameters of the case's module; 0: it has none
    violations: int = 0  # of the constraints of `mock_backend`
    backends: tuple[BackendBench, ...] = ()  # the first is the reference
    failure: str = ""  # one line; empty: it was measured
    remedy: str = ""

    @property
    def status(self) -> int:
        """0 if all results agree with the reference's, 1 if some differ, 2 if it was not measured."""
        if self.failure:
            return 2
        return 1 if any(one.verdict == "differs" for one in self.backends) else 0
