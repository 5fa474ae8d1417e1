"""`tracing bisect`: the step of the compiler that makes a case, or a kernel, wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tracing import environment, store
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.probes import Judge
from tracing.analyze.passes.pass_table import compilation
from tracing.cli.app import NARROW, RUNS, Json, Runs, app
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import Trust, consenting
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.program.case import is_case


@app.command(rich_help_panel=NARROW)
def bisect(
    name: Annotated[
        str,
        typer.Argument(metavar="CASE|RUN", help='A case, or a run by path or name, or "latest".'),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND]", help="Judges a build, as that of `git bisect run` does."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="A kernel by name, by the first digits of its hash, or NAME#2.")
    ] = None,
    launch: Annotated[
        int | None, typer.Option(help="Without COMMAND: the launch to replay, not the first.")
    ] = None,
    atol: Annotated[float | None, typer.Option(help="Without COMMAND: absolute tolerance.")] = None,
    rtol: Annotated[float | None, typer.Option(help="Without COMMAND: relative tolerance.")] = None,
    seconds: Annotated[
        float, typer.Option(help="What one compile, one call of COMMAND, or one replay may take.")
    ] = 120.0,
    repeat: Annotated[
        int, typer.Option("--repeat-judge", min=1, help="Ask so often of each build: COMMAND is flaky.")
    ] = 1,
    crash: Annotated[
        bool, typer.Option("--crash", help="Bad is a compile that dies, or hangs, as that of the run does.")
    ] = False,
    times: Annotated[
        int, typer.Option(min=1, help="CASE: compile it so often to see how often it goes wrong.")
    ] = 3,
    target: Annotated[str, typer.Option(help="CASE: what kernels are compiled for without a GPU.")] = "sm_90",
    seed: Annotated[int, typer.Option(help="CASE: seed of torch's random generators.")] = 0,
    good_torch: Annotated[
        str | None,
        typer.Option(metavar="V", help="CASE: find where the compiler of torch V, which is right, differs."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was built and judged before.")] = False,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the step of torch.compile that makes a case wrong, or the pass that makes a kernel's result bad.

    CASE: searches torch.compile from the outside to the inside: the stage (Dynamo, AOTAutograd, Inductor),
    the graph, the graph pass, decomposition, lowering, fusion or setting, and the kernel. Each build is
    compiled in a process of its own, and judged as `tracing run` judges.

    RUN: searches the passes of MLIR, LLVM and ptxas that compile one kernel. COMMAND judges each build: exit
    status 0 means good, 125 unknown, any other up to 127 bad. {ttir}, {ttgir}, {llir}, {ptx}, {cubin},
    {amdgcn} and {hsaco} in COMMAND become the paths of the build's artefacts, {dir} that of their folder,
    {ir} and {stage} the path and the language of the IR after a single pass. Without COMMAND, on a GPU,
    replays a launch of each build and compares it with Triton's interpreter.

    --crash needs no COMMAND: it finds the pass in which the compiler dies, and the earlier pass that
    provokes it. Interrupted, the same command continues the search. docs/bisect.md has the details.

    Example: tracing bisect wrong.py; tracing bisect latest --kernel softmax -- ./is-good.sh {ptx}

    Exit status: 0 if the full pipeline is good, 1 if a step or a pass is accused, 2 if there is no answer.
    """
    if good_torch is not None:
        environment.require_compiler()
        from tracing.cli.bisect.good_torch import search_good_torch

        limit = max(seconds, 600.0)
        raise typer.Exit(search_good_torch(name, good_torch, target, seed, runs, limit, as_json=as_json))
    if not (command or kernel or crash) and _is_case(name, runs):
        environment.require_compiler()
        from tracing.cli.bisect.case import search_case

        try:
            raise typer.Exit(
                search_case(name, target, seed, times, seconds, runs, fresh=fresh, as_json=as_json)
            )
        except KeyboardInterrupt:
            raise Problem("interrupted", "the same command goes on from there") from None
    run = consenting(store.open_run(name, runs), trust)
    require_same_triton(run, "bisect it")
    chosen = compilation(run, kernel)
    environment.use_inductors_ptxas()
    try:
        if crash:
            if command:
                raise Problem("--crash judges by how a compile ends", "leave out COMMAND, or --crash")
            from tracing.cli.bisect.crash import crash as search_crash

            raise typer.Exit(search_crash(run, chosen, seconds, repeat, as_json=as_json))
        judge = _judge(run, chosen, command, (launch, atol, rtol), seconds)
        # imports Triton, for which no other command needs to wait
        from tracing.cli.bisect.search import search

        raise typer.Exit(search(run, chosen, judge, seconds, repeat, fresh=fresh, as_json=as_json))
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command goes on from there") from None


def _is_case(name: str, runs: Path) -> bool:
    # a run that has the name of a case is a run
    if name == "latest" or any((folder / "run.json").exists() for folder in (Path(name), runs / name)):
        return False
    return is_case(name)


def _judge(
    run: store.Run,
    chosen: Compilation,
    command: list[str] | None,
    replay: tuple[int | None, float | None, float | None],
    seconds: float,
) -> Judge:
    if not command:
        from tracing.cli.bisect.build_judge import replay_judge

        return replay_judge(run, chosen, *replay, seconds)
    from tracing.compiler.resume import stages_of

    return CommandJudge(command, [one for one in stages_of(chosen) if one in STAGES], seconds)
