"""One evaluation of a bisection: a case is compiled in part, run, and judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tracing.launch.hooks import installed
from tracing.numerics.agreement import Agreement, Disagreement, agreement
from tracing.numerics.referee import Referee
from tracing.program.experiment import Experiment
from tracing.program.partial_compile import partly_compiled
from tracing.program.structure import Fact, Facts
from tracing.record.failures.diagnosis import Diagnosis
from tracing.replay.partial_build import (
    UNDECLARED,
    OwnKernels,
    PartialBuild,
    built_on,
    error_text,
    of_operator,
    raised,
)
from tracing.store import RunWriter
from tracing.upstream.inductor.config import settings_changed
from tracing.upstream.inductor.graph_stages import INDUCTOR
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
_UNDECIDED = (
    "exact arithmetic agrees neither with compiled nor with eager: give the case inputs for which eager "
    "agrees with float64; `tracing run CASE --no-referee` compares by fixed tolerances"
)


class PartialCase:
    """One case; eager's results and their reference are computed once."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._eager: Facts | None = None
        self._launched = OwnKernels()  # in eager
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

        The arguments are those of CompileSteps. "symptom" is the outcome, "eager_kernels" are the
        hand-written kernels that eager launches; further keys: PartialBuild.described.
        """
        build = PartialBuild(first, without, only)
        experiment = self._experiment
        if stage == CPP:
            self._experiment = dataclasses.replace(experiment, device=experiment.device.host())
        try:
            with built_on(self._experiment.device) as writer:
                symptom = self._symptom(INDUCTOR if stage == CPP else stage, build, writer)
        finally:
            self._experiment = experiment
        return {**build.described(symptom), "eager_kernels": self._launched.known()}

    def _symptom(self, stage: str, build: PartialBuild, writer: RunWriter) -> dict[str, Any]:
        diagnosis = Diagnosis(self._experiment.case.path, writer)
        try:
            with diagnosis:
                expected = self._in_eager() if self._eager is None else self._eager
        except Exception as error:  # of the case's own
            reason = diagnosis.of(error) if diagnosis.failure is not None else error_text(error)
            return {"kind": "no answer", "text": f"it fails in eager: {reason}", "remedy": _IN_EAGER}

        def compiled() -> Facts:
            forget_compiled()
            build.restart()
            with installed(build.own_kernels):
                return self._compiled(stage, build)

        def with_eagers_numbers() -> Facts:
            with settings_changed({"fallback_random": True}):
                return compiled()

        try:
            actual = compiled()
            self._referee.draw_with(with_eagers_numbers)
            one = agreement(actual, expected, self._referee if self._experiment.referee else None)
        except (Exception, SystemExit) as error:  # of the compiler, or of the case's own
            known = of_operator(error, self._experiment.case.path)
            if known is None and stage == INDUCTOR and build.is_whole:
                known = self._undeclared()
            return known or raised(error)
        return _described(one, actual, expected)

    def _undeclared(self) -> dict[str, Any] | None:
        # the symptom of a case whose operators do what they do not declare, as where code for it raises
        self._referee.prepare()
        effects = self._referee.undeclared
        return {"kind": "no answer", "text": "; ".join(effects), "remedy": UNDECLARED} if effects else None

    def _compiled(self, stage: str, build: PartialBuild) -> Facts:
        experiment = self._experiment
        if stage == UNCOMPILED:
            workload = experiment.workload()
            with compiling_reported():
                return experiment.results(workload, None)
        with partly_compiled(stage, build.steps, build.written):
            return experiment.results(experiment.workload(), torch.compile)

    def _in_eager(self) -> Facts:
        with installed(self._launched):
            return self._experiment.results(self._experiment.workload(), None)


def _described(one: Agreement, actual: Facts, expected: Facts) -> dict[str, Any]:
    if one.differing and not one.outcome.eager_repeats:
        return {"kind": "no answer", "text": _UNREPEATABLE[0], "remedy": _UNREPEATABLE[1]}
    if one.differing and one.outcome.undeclared:
        return {"kind": "no answer", "text": "; ".join(one.outcome.undeclared), "remedy": UNDECLARED}
    if one.outcome.status == "not decided":
        return {"kind": "no answer", "text": f"not decided: {one.outcome.detail}", "remedy": _UNDECIDED}
    if one.differing:
        results = [
            {"name": other.name, "how": _how(other, actual.get(other.name), expected.get(other.name))}
            for other in one.differing
        ]
        text, by_tolerances = one.outcome.detail, one.by_tolerances
        return {"kind": "differs", "text": text, "results": results, "by_tolerances": by_tolerances}
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
