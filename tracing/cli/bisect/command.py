"""`tracing bisect`: the compiler pass with which a kernel's result turns bad."""

from __future__ import annotations

from typing import Annotated

import typer

from tracing import environment, store
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.probes import Judge
from tracing.analyze.passes.pass_table import compilation
from tracing.cli.app import NARROW, RUNS, Runs, app
from tracing.cli.same_triton import require_same_triton
from tracing.errors import Problem
from tracing.model import Compilation


@app.command(rich_help_panel=NARROW)
def bisect(
    name: Annotated[str, typer.Argument(metavar="RUN", help='A run by path or name, or "latest".')],
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
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was built and judged before.")] = False,
    runs: Runs = RUNS,
) -> None:
    """Find the pass with which a kernel's result turns bad: of MLIR, of LLVM, or of ptxas.

    COMMAND is run once for each build that is tried. {ttir}, {ttgir}, {llir}, {ptx}, {cubin}, {amdgcn} and
    {hsaco} in it become the paths of the build's artefacts, {dir} that of their folder. Its exit status 0
    means good, 125 that it cannot be told, 1 to 127 bad; what is above ends the search. 124, and a COMMAND
    that takes too long, cannot be told either. Without COMMAND, on a GPU, the kernel is launched again on its
    recorded inputs, and compared with what Triton's interpreter makes of them.

    Passes that nothing can be built without are told apart by looking at the IR that each pass leaves: {ir}
    becomes the path of that, or of a build's PTX or amdgcn, and {stage} its language: ttir, ttgir, mlir (its
    LLVM dialect), llir, mir (machine code), ptx or amdgcn. COMMAND ends with 125 for those that it does not
    read. A COMMAND with {ttir}, {ttgir} or {llir} alone is given all IR of that language, too.

    --crash needs no COMMAND: it says in which pass a compile dies, also inside of LLVM and ptxas, and which
    earlier pass provokes it.

    Every search begins with a compile from the source, by the compiler as it is now, and its answer is
    confirmed by compiles from the source. Interrupted, the same command goes on where it stopped. What is
    found is a suspect, not proof.
    Exit status 0 if the full pipeline is good, 1 if a first bad step was found, 2 if there is no answer.
    """
    run = store.open_run(name, runs)
    require_same_triton(run, "bisect it")
    chosen = compilation(run, kernel)
    environment.use_inductors_ptxas()
    try:
        if crash:
            raise typer.Exit(_crash(run, chosen, command, seconds, repeat))
        judge = _judge(run, chosen, command, (launch, atol, rtol), seconds)
        # imports Triton, for which no other command needs to wait
        from tracing.cli.bisect.search import search

        raise typer.Exit(search(run, chosen, judge, seconds, repeat, fresh=fresh))
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command goes on from there") from None


def _crash(
    run: store.Run, chosen: Compilation, command: list[str] | None, seconds: float, repeat: int
) -> int:
    if command:
        raise Problem("--crash judges by how a compile ends", "leave out COMMAND, or --crash")
    from tracing.cli.bisect.crash import crash

    return crash(run, chosen, seconds, repeat)


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
