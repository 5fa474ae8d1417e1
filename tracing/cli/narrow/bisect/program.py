"""`tracing bisect PROGRAM`: search the compiler from the program down to a kernel.

The program tells by its exit status, or a command by what it prints, whether a build is right.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracing.analyze.bisect_case.case_events import CaseAnswer, CaseTried
from tracing.analyze.bisect_case.stages import INDUCTOR
from tracing.cli.app import RUNS, err
from tracing.cli.narrow.bisect.program_builds import ProgramBuilds, ProgramSpec
from tracing.cli.narrow.bisect.step_search import StepSearch
from tracing.program.user_program import UserProgram
from tracing.report.bisect import bisect_case as report
from tracing.report.text import Line


@dataclass(frozen=True, slots=True)
class ProgramSearch:
    """The arguments of one search."""

    program: UserProgram
    command: Sequence[str]  # judges what the program prints; empty: its exit status does
    target: str
    seed: int | None  # of the program's generators of random numbers
    times: int  # compiles, to measure how often the program goes wrong
    seconds: float  # time limit of one build, and of the command
    runs: Path
    virtual: bool = True  # False: without a GPU, Inductor writes C++ for tensors on the CPU

    def printed(self, *, fresh: bool, as_json: bool) -> int:
        """Search, print, and return the exit status: 0 right, 1 a step is accused, 2 no answer."""
        with err.status("importing torch"):
            from tracing.program.device import Device
            from tracing.program.warm_compiler import warm_up
            from tracing.record.repeated_input import repeated_input

            device = Device(self.target, select=False, virtual=self.virtual)
            if device.virtual:
                warm_up(device)
        spec = ProgramSpec(tuple(self.program.words), self.target, self.seed, self.virtual)
        with repeated_input() as rewind:
            builds = ProgramBuilds(spec, device, self.command, self.runs, self.seconds, rewind)
            if fresh:
                builds.forget()
            eager_is_right, unchecked = builds.eager_is_right, not self.command
            search = StepSearch(
                builds, self.times, self._ending, eager_is_right=eager_is_right, unchecked=unchecked
            )
            if as_json:
                return search.printed_json(self.program.name, lambda: None)
            return search.printed()

    def _ending(self, event: CaseTried | CaseAnswer) -> Iterator[Line]:
        if isinstance(event, CaseAnswer) and event.stage.name == INDUCTOR and event.kernels:
            yield from report.program_kernel_text(self.program.words, event.kernels[0].name, self._below)

    @property
    def _below(self) -> str:
        return "" if self.runs == RUNS else f" --runs {shlex.quote(str(self.runs))}"
