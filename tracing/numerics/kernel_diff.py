"""Compare what a model computes with two backends of torch.compile.

Outputs, gradients, mutated inputs, parameters and buffers are compared, as well as strides and aliases of
outputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tracing.model import Container, PlainValue, Uncomparable, Workload
from tracing.numerics.diff_report import KernelDiffReport, ResultDiff
from tracing.numerics.fact_difference import fact_text, stride_difference, value_difference
from tracing.numerics.plots import plot_failed
from tracing.numerics.tensor_diff import ComparisonConfig, compare_tensors
from tracing.program.experiment import Experiment, results_of
from tracing.program.state import STEPPED
from tracing.program.structure import Fact, Facts

_SEEDS = (0, 0, 1)  # added to the seed: which results depend on random numbers?
Backend = str | Callable[..., Any]


@dataclass(frozen=True, slots=True)
class KernelDiffHarness:
    """Runs a model with two backends on copies of the same inputs, from the same random seed.

    model             -- a module or function
    example_inputs    -- its positional arguments
    example_kwargs    -- its keyword arguments
    model_name        -- None: the name of its class
    reference_backend -- "eager", or a `backend` of torch.compile
    test_backend      -- "eager", or a `backend` of torch.compile
    comparison_config -- tolerances
    backward          -- the sum of all outputs is differentiated, and gradients are compared
    """

    model: Callable[..., Any]
    example_inputs: Sequence[Any]
    example_kwargs: Mapping[str, Any] = field(default_factory=dict)
    model_name: str | None = None
    reference_backend: Backend = "eager"
    test_backend: Backend = "inductor"
    comparison_config: ComparisonConfig = field(default_factory=ComparisonConfig)
    backward: bool = True
    seed: int = 0

    def compare(
        self, *, generate_visualizations: bool = False, folder: Path | None = None
    ) -> KernelDiffReport:
        """Run the model with each backend, and compare each result.

        generate_visualizations -- write a heat map of each tensor that differs, as PNG; needs matplotlib
        folder                  -- for these; None: kernel_diff/ in the working directory

        The model and its inputs are copied for each backend and stay as they are.
        Raises what the model raises. Memory: two copies of the model and its inputs.
        """
        reference, test = (self._results(one) for one in (self.reference_backend, self.test_backend))
        names = _backend_name(self.reference_backend), _backend_name(self.test_backend)
        report = _report(self.model_name or _name(self.model), names, reference, test, self.comparison_config)
        if report.failed:
            drawn = [self._results("eager", others) for others in _SEEDS]
            report = replace(report, drawn=_drawn(report, *drawn))
        if not generate_visualizations:
            return report
        plots = plot_failed(report.results, folder or Path("kernel_diff"), report.model_name)
        return replace(report, plots=plots)

    def _results(self, backend: Backend, others: int = 0) -> Facts:
        # others -- 1: with other random numbers
        model, args, kwargs = copy.deepcopy((self.model, self.example_inputs, self.example_kwargs))
        torch.compiler.reset()
        workload = Workload(model, args, kwargs, self.backward)
        return results_of(workload, compiler_of(backend), self.seed + others)


def case_diffs(
    experiment: Experiment, backends: Sequence[str], config: ComparisonConfig, now: Callable[[str], None]
) -> Iterator[KernelDiffReport]:
    """Run a case with each backend, and compare each with the first one, from equal inputs.

    now -- called with a description of the current step
    """
    results: list[Facts] = []
    with experiment.device.active():
        for backend in backends:
            now(f"running {experiment.case.name} with {backend}")
            torch.compiler.reset()
            workload = experiment.workload()
            if backend == "eager":
                results.append(experiment.results(workload, None))
            else:
                results.append(experiment.results(workload.with_backend(backend), torch.compile))
    for backend, facts in zip(backends[1:], results[1:], strict=True):
        report = _report(experiment.case.name, (backends[0], backend), results[0], facts, config)
        if report.failed:
            now(f"running {experiment.case.name} in eager with other random numbers")
            with experiment.device.active():
                seeds = (experiment.seed + others for others in _SEEDS)
                drawn = [results_of(experiment.workload(), None, seed) for seed in seeds]
                report = replace(report, drawn=_drawn(report, *drawn))
        yield report


def _drawn(report: KernelDiffReport, first: Facts, repeated: Facts, others: Facts) -> tuple[str, ...]:
    # the results that differ, and that another seed changes in eager, and repeating does not
    names = [one.name for one in report.failed]
    return tuple(
        name
        for name in names
        if _equal(first.get(name), repeated.get(name)) and not _equal(first.get(name), others.get(name))
    )


def _equal(a: Fact | None, b: Fact | None) -> bool:
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return torch.equal(a, b) if tensors else True  # type: ignore[arg-type]


def _report(
    model: str, backends: tuple[str, str], expected: Facts, actual: Facts, config: ComparisonConfig
) -> KernelDiffReport:
    both = (*expected.items(), *actual.items())
    skipped = dict.fromkeys(name for name, one in both if isinstance(one, Uncomparable))
    return KernelDiffReport(model, *backends, tuple(result_diffs(actual, expected, config)), tuple(skipped))


def compiler_of(backend: Backend) -> Callable[[Any], Any] | None:
    """The compiler of a backend; None: eager."""
    return None if backend == "eager" else lambda fn: torch.compile(fn, backend=backend)


def known_backends() -> list[str]:
    """The names that `compiler_of` takes: eager, and the backends that are registered with torch.compile."""
    return sorted({"eager", *torch.compiler.list_backends(exclude_tags=())})


def result_diffs(actual: Facts, expected: Facts, config: ComparisonConfig) -> Iterator[ResultDiff]:
    """Compare the results of two backends by name; a result of only one of them is a difference.

    Members of containers are compared, and types of containers unless `config.flatten_lists`.
    """
    for name in dict.fromkeys((*expected, *actual)):
        if any(isinstance(facts.get(name), Uncomparable) for facts in (actual, expected)):
            continue
        if name not in actual or name not in expected:
            fact = actual.get(name, expected.get(name))
            counts = not isinstance(fact, Container) or not config.flatten_lists
            if counts and not name.startswith(STEPPED):  # a step that torch.compile compiled is not observed
                yield ResultDiff(name, "missing" if name in expected else "extra")
            continue
        a, b = actual[name], expected[name]
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            strides = f"strides {a.stride()} instead of {b.stride()}" if stride_difference(name, a, b) else ""
            yield ResultDiff(name, strides, compare_tensors(a, b, config))
        elif not _is_container(a, b) or not config.flatten_lists:
            differs = value_difference(a, b)[0]
            if not differs and isinstance(a, PlainValue) and a.type == "NoneType":
                continue  # no result
            yield ResultDiff(name, f"{fact_text(a, b)} instead of {fact_text(b, a)}" if differs else "")


def _is_container(a: Fact, b: Fact) -> bool:
    return isinstance(a, Container) and isinstance(b, Container)


def _name(model: Callable[..., Any]) -> str:
    return getattr(model, "__name__", type(model).__name__)


def _backend_name(backend: Backend) -> str:
    return backend if isinstance(backend, str) else _name(backend)
