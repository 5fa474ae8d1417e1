"""The arguments and options of `tracing bisect`, with their help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tracing.cli.options.completion import case_and_run_names
from tracing.cli.options.named import OneKernelOption, RecordSeedOption, TargetOption
from tracing.cli.options.program_words import OPTIONS_FIRST
from tracing.errors import Problem
from tracing.model.chips import DEFAULT_TARGET

BisectedArgument = Annotated[
    str,
    typer.Argument(
        metavar="CASE | FILE.py [ARG]... | -m MODULE [ARG]... | RUN",
        help=f"A case, a program with its own arguments, or a recorded run. {OPTIONS_FIRST}",
        autocompletion=case_and_run_names,
    ),
]
CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as for `git bisect run`."),
]


@dataclass(frozen=True)
class BisectOptions:
    """What is built, and how each build is judged."""

    kernel: OneKernelOption = None
    launch: Annotated[int | None, typer.Option(help="RUN, without COMMAND: the launch to replay.")] = None
    atol: Annotated[float | None, typer.Option(min=0, help="RUN, without COMMAND: absolute tolerance.")] = (
        None
    )
    rtol: Annotated[float | None, typer.Option(min=0, help="RUN, without COMMAND: relative tolerance.")] = (
        None
    )
    seconds: Annotated[float, typer.Option(help="Time limit of a compile, COMMAND or replay.")] = 120.0
    repeat: Annotated[
        int, typer.Option("--repeat-judge", min=1, help="Calls of a flaky COMMAND for each build.")
    ] = 1
    crash: Annotated[bool, typer.Option("--crash", help="Bad: the compile dies or hangs as in the run.")] = (
        False
    )
    times: Annotated[
        int, typer.Option(min=1, help="CASE, PROGRAM: compiles that measure how often it goes wrong.")
    ] = 3
    target: TargetOption = DEFAULT_TARGET
    no_virtual_gpu: Annotated[
        bool,
        typer.Option(
            "--no-virtual-gpu",
            help="PROGRAM: do not emulate a GPU: Inductor compiles C++ for tensors on the CPU.",
        ),
    ] = False
    seed: RecordSeedOption = None
    good_torch: Annotated[
        str | None,
        typer.Option(metavar="V", help="CASE: compare with the compiler of torch V, which is right."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore cached builds and judgements.")] = False

    @property
    def of_replay(self) -> dict[str, float | None]:
        """The options about the replay of a launch, by name."""
        return {"--launch": self.launch, "--atol": self.atol, "--rtol": self.rtol}

    def require_of_case(self) -> None:
        """Raise Problem for an option that has no effect on the search of a case."""
        _require_none("a case", {"--kernel": self.kernel, "--crash": self.crash, **self.of_replay})

    def require_of_program(self) -> None:
        """Raise Problem for an option that has no effect on the search of a program."""
        of_others = {"--kernel": self.kernel, "--crash": self.crash, "--good-torch": self.good_torch}
        _require_none("a program", {**of_others, **self.of_replay})

    def require_judged_by_end(self, command: list[str] | None) -> None:
        """Raise Problem if something else than the end of a compile would judge."""
        given = [option for option, value in self.of_replay.items() if value is not None]
        for word in ["COMMAND"] * bool(command) + given:
            raise Problem("--crash judges by how a compile ends", f"leave out {word}, or --crash")

    def require_judged_by_command(self) -> None:
        """Raise Problem for an option about a replay."""
        if any(one is not None for one in self.of_replay.values()):
            raise Problem(
                "--launch, --atol and --rtol have no effect with COMMAND", "leave out these, or COMMAND"
            )


def _require_none(what: str, options: dict[str, object]) -> None:
    for option, value in options.items():
        if value is not None and value is not False:  # 0.0 == False
            raise Problem(
                f"{option} is not for {what}",
                "leave it out, or record a run: `tracing run …`, then `tracing bisect latest --kernel K`",
            )
