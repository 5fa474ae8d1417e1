"""`tracing swap`: which kernels of b, launched as a launched them, give a's results?"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracing import environment, store
from tracing.analyze.bisect import delta_debugging as delta
from tracing.analyze.replay import swap_plan
from tracing.analyze.replay.swap_cache import RerunCache
from tracing.analyze.replay.swap_plan import Candidate
from tracing.analyze.runs.rerecording import case_of, is_virtual, target_of, variables
from tracing.cli import hints
from tracing.cli.app import NARROW, RUNS, Runs, app, err, out, progress
from tracing.cli.run_pair import Anyway, First, Second, open_pair
from tracing.errors import Problem
from tracing.model import Outcome, Rerun, Winner
from tracing.report import swap as report
from tracing.report.text import plural
from tracing.store.recorded_launch import find_launch

if TYPE_CHECKING:
    from tracing.replay.swapped_case import SwappedCase

_AGAIN = "`tracing repeat CASE` says whether it is deterministic; if so, record it again here"


class Version(str, Enum):
    """What a kernel is replaced with."""

    source = "source"
    configuration = "configuration"
    eager = "eager"


@app.command(rich_help_panel=NARROW)
def swap(
    a: First,
    b: Second,
    version: Annotated[
        Version | None,
        typer.Option(
            "--with",
            help="Replace a kernel with the source of A, or with its configuration (constants, num_warps, "
            "grid), not with both; or, on a GPU, with Triton's interpreter.",
        ),
    ] = None,
    each_launch: Annotated[
        bool, typer.Option("--each-launch", help="Find the launches of these kernels, too.")
    ] = False,
    anyway: Anyway = False,
    runs: Runs = RUNS,
) -> None:
    """Find the kernels of run B that must be launched as run A launched them to give the results of A.

    Runs the case of B repeatedly, each time with other kernels replaced. Interrupted, the same command
    continues the search.

    Example: tracing swap silu-20261121-021546 latest --with configuration

    Exit status: 0 if the results are equal, 1 if kernels are to blame, 2 if the cause is outside of them.
    """
    raise typer.Exit(swapped(*open_pair(a, b, runs, anyway=anyway), version, each_launch))


def swapped(a: store.Run, b: store.Run, version: Version | None, each_launch: bool) -> int:
    """Find the kernels of b that are to blame for its results, and print them; the status.

    version     -- what they are replaced with; None: a's source and configuration
    each_launch -- find the launches of these kernels, too

    Interrupted, it goes on where it stopped.
    """
    wanted = swap_plan.results(a)
    if swap_plan.results(b) == wanted:
        out.print(f"the results are equal: {', '.join(wanted)}; there is nothing to swap kernels for")
        return 0
    planned = swap_plan.plan(a, b, version.value if version else None)
    for line in report.plan_text(planned):
        out.print(line)
    if version is Version.eager:
        err.print(f"[dim]{report.interpreting_text(planned)}[/]")
    if not planned.candidates:
        raise Problem(
            "cannot be decided, because no kernel can be replaced with another",
            "`tracing compare RUN RUN` shows where the runs first differ",
        )
    environment.require_compiler()
    close = version is Version.eager and _agrees(a) and not _agrees(b)
    try:
        with environment.changed(variables(b)), _program(b, version, close) as program:
            return _Search(wanted, b, program, planned.candidates, close).status(each_launch)
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command goes on from there") from None


def _agrees(run: store.Run) -> bool:
    # whether the recorded case agreed with torch's eager
    return any(outcome.status == "passed" for outcome in run.records(Outcome))


def _program(b: store.Run, version: Version | None, close: bool) -> SwappedCase:
    info = b.info
    virtual = is_virtual(info.environment)
    with err.status("importing torch"):
        from tracing.program.device import Device
        from tracing.replay.swapped_case import SwappedCase
        from tracing.virtual_gpu.chips import DEFAULT_TARGET

        device = Device(target_of(info.environment) if virtual else DEFAULT_TARGET)
    if device.virtual != virtual:
        where = "without a GPU, and here is one" if virtual else "on a GPU, and here is none"
        raise Problem(f"{b.path} was recorded {where}", "record both runs here")
    if device.virtual and version is Version.eager:
        raise Problem(
            "without a GPU Triton's interpreter executes every kernel, so `--with eager` replaces nothing",
            "`--with source`, `--with configuration`, or neither",
        )
    case = device.load(case_of(info))
    return SwappedCase(case, device, info.seed, eager=close, winners=list(b.records(Winner)))


class _Search:
    """The runs of one search, and what is printed of them."""

    def __init__(
        self,
        wanted: Mapping[str, str],
        b: store.Run,
        program: SwappedCase,
        candidates: Sequence[Candidate],
        close: bool,
    ) -> None:
        self.wanted, self.b, self.program, self.close = wanted, b, program, close
        self.candidates = list(candidates)
        content = hashlib.blake2b(Path(b.info.path).read_bytes()).hexdigest()
        installed = [environment.installed(package) for package in ("torch", "triton")]
        own = [f"{name}={value}" for name, value in sorted(variables(b).items())]
        key = [
            *own,
            content,
            b.info.case,
            str(b.info.seed),
            b.info.environment.target,
            *installed,
            str(close),
        ]
        self.reruns = RerunCache(b, key, program.run)

    def status(self, each_launch: bool) -> int:
        """Search, print, and give the exit status."""
        seconds = self._nothing()
        if not self._everything():
            return 2
        found = self._minimal("kernel", self.candidates, seconds)
        launches = swap_plan.each_launch(found)
        if each_launch and len(launches) > len(found):
            found = self._minimal("launch", launches, seconds)
        self._confirm(found)
        without = [self._differing([each for each in found if each is not one]) for one in found]
        out.print()
        for line in report.found_text(found, without, len(self.candidates), report.equality(self.close)):
            out.print(line)
        known = f"; {self.reruns.known} more were known" if self.reruns.known else ""
        out.print(f"{plural(self.reruns.ran, 'run')} of the case{known}", markup=False)
        for command in self._next(found):
            out.print(f"    next      {command}", markup=False)
        return 1

    def _next(self, found: Sequence[Candidate]) -> Iterator[str]:
        first: dict[str, int] = {}  # of each kernel one launch
        for one in found:
            first.setdefault(one.kernel, one.turns[0].index)
        for index in first.values():
            _, launch = find_launch(self.b, index)
            yield from hints.of_launch(self.b, launch)

    def _nothing(self) -> float:
        # the one end: b's own results, which differ from a's; how long it takes
        with err.status("running the case with nothing replaced"):
            started = time.perf_counter()
            found = self.reruns.of([], again=True)
            seconds = time.perf_counter() - started
        if found.outcome.status == "failed":
            raise Problem(f"the case of b, run again here, fails: {found.outcome.detail}", _AGAIN)
        if found.results != swap_plan.results(self.b):
            which = "those of a" if found.results == self.wanted else "neither those of a nor those of b"
            raise Problem(f"the case of b, run again here, gives other results: {which}", _AGAIN)
        differing = ", ".join(self._unequal(found))
        out.print(f"nothing replaced: {differing}  ({seconds:.1f} s)", markup=False)
        for one in list(self.candidates):
            seen = self.program.launched.get(one.kernel, 0)
            if seen != one.launches:
                self._drop(one.kernel, f"b has {plural(one.launches, 'launch')} of it, and {seen} came again")
        return seconds

    def _everything(self) -> bool:
        # the other end; a kernel whose replacement fails is left out
        while self.candidates:
            with err.status(f"running the case with {plural(len(self.candidates), 'kernel')} replaced"):
                found = self.reruns.of(self.candidates)
            if not found.refused:
                break
            self._drop(found.refused, found.outcome.detail)
        if not self.candidates:
            raise Problem("cannot be decided, because no kernel could be replaced")
        unequal = self._unequal(found)
        for line in report.everything_text(len(self.candidates), unequal, report.equality(self.close)):
            out.print(line)
        return not unequal

    def _drop(self, kernel: str, why: str) -> None:
        out.print(report.not_covered(kernel, why))
        self.candidates = [one for one in self.candidates if one.kernel != kernel]

    def _minimal(self, noun: str, items: Sequence[Candidate], seconds: float) -> list[Candidate]:
        most = delta.most(len(items))
        ahead = f"{plural(len(items), noun)}: at most {plural(most, 'run')} of some {seconds:.1f} s"
        err.print(f"[dim]{ahead}; seldom more than a few for each {noun} to blame[/]")
        with progress(f"which {noun} is to blame", most) as advance:

            def passes(chosen: list[Candidate]) -> bool:
                equal = not self._differing(chosen)
                advance()
                return equal

            return delta.minimal(items, passes)

    def _differing(self, chosen: Sequence[Candidate]) -> tuple[str, ...]:
        return self._unequal(self.reruns.of(chosen))

    def _unequal(self, found: Rerun) -> tuple[str, ...]:
        # what is not as it should be
        if found.outcome.status == "failed" or self.close:
            return () if found.outcome.status == "passed" else (found.outcome.detail,)
        names = {**found.results, **self.wanted}
        return tuple(f"{name} differs" for name in names if found.results.get(name) != self.wanted.get(name))

    def _confirm(self, found: Sequence[Candidate]) -> None:
        with err.status("running the case once more"):
            again = self._unequal(self.reruns.of(found, again=True))
        if again:
            told = ", ".join(again)
            raise Problem(f"the case contradicts itself: with these replaced a second time, {told}", _AGAIN)
