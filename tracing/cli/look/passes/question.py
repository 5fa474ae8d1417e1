"""The options of `tracing passes`, validated together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tracing.analyze.passes.pass_table import AnyPass, P, PassStep
from tracing.errors import Problem

PassSide: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class PassQuestion:
    """A question about the passes of one run, or of two."""

    kernels: tuple[
        str, ...
    ] = ()  # none: all; with two runs one name: of both runs; two names: one of each run
    which: str | None = None  # a pass
    stage: str | None = None
    changed: bool = False
    llvm: bool = False
    op: str | None = None  # a glob of names of operations
    locations: bool = False
    side: PassSide | None = None  # print the IR on this side of the pass, not the diff
    output: Path | None = None
    seconds: float = 300.0

    @property
    def kernel(self) -> str | None:
        """The kernel, of one run."""
        return self.kernels[0] if self.kernels else None

    @property
    def of_one_pass_or_operation(self) -> bool:
        """True if the answer is not a list of passes."""
        return self.which is not None or self.op is not None

    @property
    def of_every_kernel(self) -> bool:
        """True if the options do not need a single kernel."""
        return not (self.of_one_pass_or_operation or self.changed or self.stage or self.llvm or self.kernels)

    def wants(self, record: AnyPass) -> bool:
        """True for a pass that the options select by stage and by change."""
        return self.stage in (None, record.stage) and (record.changed or not self.changed)

    def among(self, steps: Sequence[PassStep[P]]) -> list[PassStep[P]]:
        """The steps that changed the IR, with --changed; else all."""
        return [step for step in steps if step.record.changed or not self.changed]

    def require_about_one_run(self) -> None:
        """Raise Problem for options that do not fit together."""
        if self.side is not None and self.op is not None:
            raise Problem("--before and --after print the whole IR", "leave out --op")
        if len(self.kernels) > 1:
            problem = "one run is asked about one kernel at a time"
            raise Problem(problem, "two kernels: name the run twice")

    def require_about_two_runs(self) -> None:
        """Raise Problem for options that need a single run."""
        refused = {
            "--llvm": self.llvm, "--op": self.op,
            "--before, --after": self.side, "--locations": self.locations,
        }  # fmt: skip
        for option in (option for option, value in refused.items() if value):
            raise Problem(f"{option} is about one run", "name one, or leave the option out")

    def require_about_graph(self) -> None:
        """Raise Problem for options about kernels."""
        given = {
            "--kernel": self.kernels,
            "--llvm": self.llvm,
            "--op": self.op,
            "--locations": self.locations,
        }
        for option in (option for option, value in given.items() if value):
            raise Problem(f"{option} is about kernels, and --graph about a graph", "leave one of the two out")

    def require_no_file(self) -> None:
        """Raise Problem for -o, which takes text."""
        if self.output is not None:
            raise Problem(
                "-o takes the IR as text, and --json prints it in an object", "leave out one of them"
            )


def side_asked_for(which: str | None, before: bool, after: bool, output: Path | None) -> PassSide | None:
    """The side of a pass whose IR is asked for; None: its diff. Raises Problem where options do not fit."""
    if before and after:
        raise Problem("--before and --after are two texts", "ask for one at a time")
    if (before or after) and which is None:
        raise Problem("--before and --after are of a pass", "name one with --pass")
    if output is not None and not (before or after):
        raise Problem("-o takes the IR of --before or --after", "add one of them")
    return "before" if before else "after" if after else None
