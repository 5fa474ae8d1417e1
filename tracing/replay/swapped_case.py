"""Runs a case in this process, any number of times, with some of its launches replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import torch

from tracing.errors import Problem
from tracing.model import Case, Outcome, SwapResult, Winner
from tracing.numerics.agreement import outcome_of
from tracing.program.case import describe
from tracing.program.device import Device
from tracing.program.experiment import Experiment
from tracing.program.structure import Facts
from tracing.record.autotuning.winners import Winners
from tracing.record.results import values
from tracing.replay.launch_swaps import Chosen, Swaps
from tracing.upstream.torch.dynamo import forget_compiled


class SwappedCase:
    """While entered, a case can be run repeatedly; runs share compiled kernels."""

    def __init__(
        self, case: Case, device: Device, seed: int, *, eager: bool, winners: Sequence[Winner] = ()
    ) -> None:
        """Run `case` on `device`.

        eager   -- compare each run with torch's eager, as `tracing run` does
        winners -- the configurations that autotuners take
        """
        self._experiment, self._eager = Experiment(case, device, seed), eager
        self._winners = Winners(None, winners)
        self._swaps = Swaps()
        self._expected: Facts = {}
        self._exit = ExitStack()

    @property
    def launched(self) -> Mapping[str, int]:
        """The number of launches of each kernel in the last run."""
        return self._swaps.launched

    def __enter__(self) -> SwappedCase:
        with ExitStack() as stack:
            stack.enter_context(self._experiment.device.active())
            if self._eager:
                workload = self._experiment.workload()
                self._expected = self._experiment.results(workload, None)
            stack.enter_context(self._winners)
            stack.enter_context(self._swaps)
            self._exit = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._exit.close()

    def run(self, chosen: Chosen) -> SwapResult:
        """The results of the case with these launches replaced; a case that raises has failed."""
        forget_compiled()  # only kernels of the previous run are reused
        self._swaps.choose(chosen)
        try:
            actual = self._experiment.results(self._experiment.workload(), torch.compile)
            bits = {name: value.identity for name, value in values(actual)}
        except Exception as error:
            detail = (
                error.problem if isinstance(error, Problem) else describe(error, self._experiment.case.path)
            )
            return SwapResult({}, Outcome("failed", detail), self._swaps.refused)
        return SwapResult(bits, outcome_of(actual, self._expected) if self._eager else Outcome("passed", ""))
