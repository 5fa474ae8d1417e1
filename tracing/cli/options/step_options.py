"""The options of `tracing run` that select steps of a program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

import typer

from tracing.cli.options.size import size
from tracing.model import StepSelection


class UntilOption(str, Enum):
    """The values after which the recording of steps stops."""

    nan = "nan"
    inf = "inf"
    any = "any"


@dataclass(frozen=True)
class StepOptions:
    """The steps that are recorded, and those that stay on disk."""

    last: Annotated[
        int | None,
        typer.Option(
            help="Keep the last N steps on disk, and at most N/8 + 4 more; delete earlier ones.", metavar="N"
        ),
    ] = None
    every: Annotated[int, typer.Option(help="Record each N-th step.", metavar="N")] = 1
    steps: Annotated[str, typer.Option(help="Record these steps, START:STOP.")] = ":"
    until: Annotated[
        UntilOption | None,
        typer.Option(help="Stop recording after the first step with a NaN, with an inf, or with either."),
    ] = None
    disk: Annotated[
        int | None,
        typer.Option(
            parser=size,
            metavar="SIZE",
            help="The run occupies at most this much, kernels and tensors included: the oldest steps are "
            "deleted. At least 8MiB.",
        ),
    ] = None

    def selection(self, digests: str, *, shared_tensors: bool) -> StepSelection:
        """The selected steps; raises Problem as `tracing.record.step_selection` does."""
        from tracing.record.step_selection import step_selection

        until: Literal["", "nan", "inf", "any"] = self.until.value if self.until else ""
        return step_selection(
            self.last,
            self.every,
            self.steps,
            until,
            self.disk,
            digests=digests,
            shared_tensors=shared_tensors,
        )
