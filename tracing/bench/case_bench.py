"""Measure one case with each backend, from equal inputs, and compare the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tracing.analyze.runs.frame_compiles import GuardReport
from tracing.backend.check_record import checks_recorded
from tracing.backend.graph_check import check_graph
from tracing.backend.mock import default_constraints
from tracing.bench.latency import latencies, seconds
from tracing.environment import fresh_caches
from tracing.environment.mock_settings import mock_settings
from tracing.model import BackendBench, CaseBench, CompiledFrame, GraphKind, Workload
from tracing.model.record import with_fields
from tracing.numerics.agreement import outcome_of
from tracing.numerics.kernel_diff import compiler_of, result_diffs
from tracing.numerics.referee import Referee
from tracing.numerics.tensor_diff import ComparisonConfig
from tracing.program.backward import differentiate
from tracing.program.experiment import Experiment
from tracing.program.structure import Facts
from tracing.record.graphs.frame_compiles import described
from tracing.store.unused_run import unused_run
from tracing.upstream.inductor.backend_compile import aot_compiled
from tracing.upstream.torch.dynamo import forget_compiled, nothing_compiled
from tracing.upstream.torch.frame_compiles import frame_compiles


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """The settings of a measurement."""

    backends: Sequence[str]  # the first is the reference
    warmup: int  # calls before those that are measured
    runs: int
    tolerances: ComparisonConfig = field(default_factory=ComparisonConfig)


def bench_case(experiment: Experiment, settings: BenchSettings, now: Callable[[str], None]) -> CaseBench:
    """Measure a case with each backend; its gradients too if it asks for them.

    now -- called with a description of the current step

    Caches are empty before a backend's cold compile, and kept from it to the warm one. Modules that
    Inductor and its compile workers load once per process are loaded before. Raises what the case raises.
    """
    measured: list[BackendBench] = []
    reference: Facts = {}
    with experiment.device.active(), unused_run() as writer, checks_recorded(writer):
        for backend in settings.backends:
            one = _Measured(experiment, backend, settings, lambda text, b=backend: now(f"{b}: {text}"))  # type: ignore[misc]
            with fresh_caches():
                bench = one.bench()
                now(f"{backend}: comparing results")
                facts = one.results()
            if not measured:
                reference = facts
            else:
                verdict, detail = _verdict(experiment, backend, facts, reference, settings.tolerances, now)
                bench = with_fields(bench, verdict=verdict, detail=detail)
            measured.append(bench)
        now("checking constraints")
        violations, parameters = _violations(experiment)
    return CaseBench(experiment.case.name, experiment.device.name, parameters, violations, tuple(measured))


@dataclass(frozen=True, slots=True)
class _Measured:
    experiment: Experiment
    backend: str
    settings: BenchSettings
    now: Callable[[str], None]

    def bench(self) -> BackendBench:
        workload = self.experiment.workload()
        compiler = compiler_of(self.backend)
        if compiler is None:
            with nothing_compiled():
                return BackendBench(self.backend, self._times(_call(workload.fn, workload)), None, None, 0, 0)
        frames: list[CompiledFrame] = []
        self._load()
        self.now("cold compile")
        with frame_compiles(lambda one: frames.append(described(one))):
            cold = seconds(_call(compiler(workload.fn), workload), self._cuda)
        self.now("warm compile")
        forget_compiled()
        call = _call(compiler(workload.fn), workload)
        warm = seconds(call, self._cuda)
        times = self._times(call)
        report = GuardReport(frames)
        return BackendBench(self.backend, times, cold, warm, len(report.graphs), len(report.breaks))

    @property
    def _cuda(self) -> bool:
        return self.experiment.device.type == "cuda"

    def _times(self, call: Callable[[], object]) -> tuple[float, ...]:
        for index in range(self.settings.warmup):
            self.now(f"warming up, {index + 1} of {self.settings.warmup}")
            call()
        runs = self.settings.runs
        return tuple(latencies(call, self._cuda, runs, lambda index: self.now(f"call {index + 1} of {runs}")))

    def results(self) -> Facts:
        forget_compiled()
        return self.experiment.results(self.experiment.workload(), compiler_of(self.backend))

    def _load(self) -> None:
        self.now("loading")
        x = torch.ones(4, device=self.experiment.device.type)
        torch.compile(lambda one: one.cos() + 1, backend=self.backend)(x)
        forget_compiled()


def _call(fn: Callable[..., Any], workload: Workload) -> Callable[[], object]:
    def call() -> None:
        returned = fn(*workload.args, **workload.kwargs)
        if workload.backward:
            differentiate(returned)

    return call


def _verdict(
    experiment: Experiment,
    backend: str,
    actual: Facts,
    expected: Facts,
    tolerances: ComparisonConfig,
    now: Callable[[str], None],
) -> tuple[str, str]:
    # the tolerances decide; results beyond the default ones are judged by float64
    failed = [one.name for one in result_diffs(actual, expected, tolerances) if not one.passed]
    if not failed:
        return "pass", ""
    if tolerances == ComparisonConfig():
        referee = Referee.of(experiment, compiler_of(backend), now)
        outcome = outcome_of(actual, expected, referee)
        if outcome.status == "passed":
            return "pass", f"{len(failed)} results beyond the tolerances, within rounding: {outcome.detail}"
    if len(failed) == 1:
        return "differs", f"{failed[0]} differs"
    return "differs", f"{len(failed)} results differ, the first is {failed[0]}"


def _violations(experiment: Experiment) -> tuple[int, int]:
    # of the constraints of `mock_backend`, and the number of parameters
    constraints = default_constraints(mock_settings())
    violations = 0

    def compiler(aten: torch.fx.GraphModule, kind: GraphKind) -> Callable[..., Any]:
        nonlocal violations
        violations += sum(one.decided for one in check_graph(aten.graph, constraints).violations)
        return lambda inputs: aten(*inputs)

    forget_compiled()
    workload = experiment.workload()
    checked = torch.compile(workload.fn, backend=lambda graph, inputs: aot_compiled(graph, inputs, compiler))
    _call(checked, workload)()
    module = workload.fn
    parameters = module.parameters() if isinstance(module, torch.nn.Module) else ()
    return violations, sum(one.numel() for one in parameters)
