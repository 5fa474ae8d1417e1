"""The options of `tracing show` that say which part of a run is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tracing.errors import Problem
from tracing.report.run import PAGE


@dataclass(frozen=True)
class ShownPart:
    """All launches, a page of them, one of them or of the operators, or those that arrive."""

    launch: Annotated[
        int | None, typer.Option(help="One launch in full, with the compilation of its kernel.")
    ] = None
    stage: Annotated[
        str,
        typer.Option(help="With --launch: print its kernel's python, source, ttir, ttgir, llir or ptx."),
    ] = ""
    operators: Annotated[
        bool, typer.Option("--operators", help="Instead: the operators outside of Triton, a line each.")
    ] = False
    operator: Annotated[
        int | None, typer.Option(help="Instead: one operator in full, by its number, with its digests.")
    ] = None
    page: Annotated[
        int, typer.Option(min=1, help=f"Of a run with more than {PAGE} launches: this page of them.")
    ] = 1
    whole: Annotated[bool, typer.Option("--all", help="Show every launch, or every operator.")] = False
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Show the last 10 launches, or --all, then new ones until the recording ends.",
        ),
    ] = False

    def require_one(self, *, as_json: bool) -> None:
        """Raise Problem for options that do not fit together.

        as_json -- True: with --json
        """
        of_operators = self.operators or self.operator is not None
        if self.launch is not None and of_operators:
            raise Problem("--launch shows a launch, and --operator an operator", "leave out one")
        if self.stage and (self.launch is None or self.follow or as_json):
            raise Problem(
                "--stage prints a stage of a launch's kernel",
                "give --launch N with it, without --follow or --json",
            )
        given = {
            "--json": as_json, "--launch": self.launch is not None,
            "--operators or --operator": of_operators, "--page": self.page != 1,
        }  # fmt: skip
        for option in (option for option, is_given in given.items() if self.follow and is_given):
            raise Problem(f"--follow prints launches as they arrive, and {option} does not", "leave out one")
