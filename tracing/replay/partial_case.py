"""One evaluation of a bisection: a case is compiled in part, run, and judged."""

from __future__ import annotations

import dataclasses
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import torch

from tracing.errors import message
from tracing.launch.hooks import NOTHING_AFTER, installed
from tracing.launch.launch_site import LaunchSite
from tracing.numerics.agreement import Agreement, Disagreement, agreement
from tracing.numerics.referee import Referee
from tracing.program.compile_steps import CompileSteps
from tracing.program.experiment import Experiment
from tracing.program.partial_compile import partly_compiled
from tracing.program.structure import Fact, Facts
from tracing.record.failures.diagnosis import Diagnosis, sentence
from tracing.record.failures.error_chain import ErrorChain
from tracing.record.failures.inductor_failures import node_failure, operator_failure, raised_by_operator
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.store import RunWriter
from tracing.upstream.inductor.code import is_generated
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.inductor.generated_kernels import KernelWritten
from tracing.upstream.inductor.graph_stages import INDUCTOR
from tracing.upstream.inductor.user_kernels import FunctionLines, user_kernel
from tracing.upstream.torch.autograd import NO_BACKWARD, backward_pass
from tracing.upstream.torch.dynamo import compiling_reported, forget_compiled

CPP, UNCOMPILED = "inductor, C++", "uncompiled"
_IN_EAGER = (
    "torch.compile is not to blame. `tracing run CASE` records what fails; if it is a pass of a kernel's "
    "compiler, `tracing bisect RUN --crash` finds what provokes it"
)
_UNREPEATABLE = (
    "eager itself gives another result each time: the program keeps state, draws random numbers of its own, "
    "or reads memory that nothing wrote",
    "let build(device) make all state, and seed all generators, so that eager repeats its result",
)
_OF_OPERATOR = (
    "no step of the compiler is to blame: the operator or torch.library raises it; mend the operator as the "
    "error says"
)
_UNDECLARED = (
    "no step of the compiler is to blame: torch.compile orders and merges reads by what schemas declare; "
    "name a written argument in the operator's `mutates_args`; return a clone instead of an input or a view"
)
_UNDECIDED = (
    "exact arithmetic agrees neither with compiled nor with eager: give the case inputs for which eager "
    "agrees with float64; `tracing run CASE --no-referee` compares by fixed tolerances"
)
_IN_PROCESS = {"compile_threads": 1}  # a fork has no workers, and a worker none of the steps


class PartialCase:
    """One case; eager's results and their reference are computed once."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._eager: Facts | None = None
        self._launched = _OwnKernels()  # in eager
        self._referee = Referee(self._in_eager, lambda: {}, lambda stage: None)

    def prepare(self) -> None:
        """Compute eager's results and the reference, so that forks of this process inherit them.

        A case whose results change on repetition keeps state: each fork runs it in eager itself.
        """
        with self._experiment.device.active():
            first, second = self._in_eager(), self._in_eager()
            if agreement(second, first).outcome.status == "passed":
                self._eager = first
                self._referee.prepare()

    def evaluate(
        self,
        stage: str,
        first: Mapping[str, int],
        without: Mapping[str, Sequence[str]],
        only: Mapping[str, Sequence[str]],
    ) -> dict[str, Any]:
        """Compile up to a stage with some steps, run, and judge; returns the result as JSON values.

        stage -- as for partly_compiled; CPP: INDUCTOR with C++ kernels, for tensors on the CPU; UNCOMPILED:
                 what the program itself computes for compilation, without any compiler

        The arguments are those of CompileSteps. "symptom" is the outcome, "steps" the steps of each part,
        "kernels" the kernels that Inductor wrote, "own_kernels" the hand-written ones that were launched.
        """
        started = time.perf_counter()
        own = _OwnKernels()
        steps, kernels = CompileSteps(first, without, only), list[dict[str, Any]]()
        experiment = self._experiment
        if stage == CPP:
            self._experiment = dataclasses.replace(experiment, device=experiment.device.host())
        try:
            active = self._experiment.device.active()
            with active, self._kept_inside() as writer, settings_changed(_IN_PROCESS):
                symptom = self._symptom(INDUCTOR if stage == CPP else stage, steps, kernels, own, writer)
        finally:
            self._experiment = experiment
        asked = {part: [dataclasses.asdict(one) for one in some] for part, some in steps.asked.items()}
        seconds = time.perf_counter() - started
        answer = {"symptom": symptom, "steps": asked, "kernels": kernels, "seconds": seconds}
        return {**answer, "own_kernels": own.known(), "eager_kernels": self._launched.known()}

    def _symptom(
        self,
        stage: str,
        steps: CompileSteps,
        kernels: list[dict[str, Any]],
        own: _OwnKernels,
        writer: RunWriter,
    ) -> dict[str, Any]:
        diagnosis = Diagnosis(self._experiment.case.path, writer)
        try:
            with diagnosis:
                expected = self._in_eager() if self._eager is None else self._eager
        except Exception as error:  # of the case's own
            reason = diagnosis.of(error) if diagnosis.failure is not None else _error_text(error)
            return {"kind": "no answer", "text": f"it fails in eager: {reason}", "remedy": _IN_EAGER}

        def written(name: str, source: str, nodes: list[str]) -> None:
            kernels.append({"name": name, "source": source, "nodes": nodes})

        def compiled() -> Facts:
            forget_compiled()
            kernels.clear()
            steps.restart()
            with installed(own):
                return self._compiled(stage, steps, written)

        def with_eagers_numbers() -> Facts:
            with settings_changed({"fallback_random": True}):
                return compiled()

        try:
            actual = compiled()
            self._referee.draw_with(with_eagers_numbers)
            one = agreement(actual, expected, self._referee if self._experiment.referee else None)
        except (Exception, SystemExit) as error:  # of the compiler, or of the case's own
            chain = ErrorChain(error, self._experiment.case.path)
            if raised_by_operator(chain):
                failure = operator_failure(chain) or node_failure(chain)
                text = sentence(failure) if failure else _error_text(chain.errors[-1])
                return {"kind": "no answer", "text": text, "remedy": _OF_OPERATOR}
            where = _raised_at(error)
            return {
                "kind": "raises",
                "text": _error_text(error),
                "error": type(error).__name__,
                "where": where,
            }
        return _described(one, actual, expected)

    def _compiled(self, stage: str, steps: CompileSteps, written: KernelWritten) -> Facts:
        experiment = self._experiment
        if stage == UNCOMPILED:
            workload = experiment.workload()
            with compiling_reported():
                return experiment.results(workload, lambda fn: fn)
        with partly_compiled(stage, steps, written):
            return experiment.results(experiment.workload(), torch.compile)

    @contextmanager
    def _kept_inside(self) -> Iterator[RunWriter]:
        # as under `tracing run`, a launch that leaves its tensors fails; a GPU does not notice it
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracing-")))
            (folder / "blobs").mkdir()
            writer = stack.enter_context(closing(RunWriter(folder)))
            if self._experiment.device.virtual:
                stack.enter_context(LaunchRecorder(writer, "none", operators="none", graphs=False))
            yield writer

    def _in_eager(self) -> Facts:
        with installed(self._launched):
            return self._experiment.results(self._experiment.workload(), lambda fn: fn)


class _OwnKernels:
    # a listener: the hand-written kernels that are launched, in order

    def __init__(self) -> None:
        self._lines: dict[str, FunctionLines | None] = {}  # by name; None: Inductor wrote the kernel
        self._backward: set[str] = set()  # names of kernels that a backward pass launches

    def before(self, site: LaunchSite, *_: object) -> object:
        if site.name not in self._lines:
            self._lines[site.name] = user_kernel(site.compiled().function)
        if backward_pass() != NO_BACKWARD:
            self._backward.add(site.name)
        return NOTHING_AFTER

    def after(self, token: object) -> None:
        pass  # is not called

    def known(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "python": f"{Path(lines.file).name}:{lines.line}",
                "backward": name in self._backward,
            }
            for name, lines in self._lines.items()
            if lines is not None
        ]


def _described(one: Agreement, actual: Facts, expected: Facts) -> dict[str, Any]:
    if one.differing and not one.outcome.eager_repeats:
        return {"kind": "no answer", "text": _UNREPEATABLE[0], "remedy": _UNREPEATABLE[1]}
    if one.differing and one.outcome.undeclared:
        return {"kind": "no answer", "text": "; ".join(one.outcome.undeclared), "remedy": _UNDECLARED}
    if one.outcome.status == "not decided":
        return {"kind": "no answer", "text": f"not decided: {one.outcome.detail}", "remedy": _UNDECIDED}
    if one.differing:
        results = [
            {"name": other.name, "how": _how(other, actual.get(other.name), expected.get(other.name))}
            for other in one.differing
        ]
        return {"kind": "differs", "text": one.outcome.detail, "results": results}
    return {"kind": "eager is off" if one.eager_off else "right", "text": one.outcome.detail}


def _how(one: Disagreement, actual: Fact | None, expected: Fact | None) -> str:
    if actual is None or expected is None:
        return "missing"
    if not (isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)):
        return "value"
    if actual.shape != expected.shape or one.laid_out:
        return "layout"
    finite = [bool(torch.isfinite(tensor).all()) for tensor in (actual, expected)]
    return "not finite" if finite == [False, True] else "value"


def _raised_at(error: BaseException) -> str:
    # while the generated code is still there
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    file = "the code that Inductor generated" if is_generated(last.filename) else last.filename
    return f"{file}, line {last.lineno}: {last.line}"


def _error_text(error: BaseException) -> str:
    lines = [line.strip() for line in message(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
