"""`tracing bisect`: the step of the compiler that makes a case, or a kernel, wrong."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import typer

from tracing import store
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.probes import Judge
from tracing.cli.answers import hints
from tracing.cli.answers.kept_answer import (
    Answering,
    IntoOption,
    printed_answer,
    require_run_of,
    run_for_answer,
)
from tracing.cli.app import NARROW, RUNS, Json, Runs, app
from tracing.cli.narrow.bisect.by_artefacts import by_artefacts
from tracing.cli.narrow.bisect.options import BisectedArgument, BisectOptions, CommandArgument
from tracing.cli.options.case_or_run import names_case
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.opened import open_run
from tracing.cli.options.option_record import with_option_records
from tracing.cli.options.program_words import ProgramOrRunCommand, is_program, program_of
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import Trust, consenting
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.program.case import case_name, require_case

_GPUS = ("nvidia", "kfd", "dxg")  # devices of NVIDIA, of AMD, and of either under WSL


@app.command(rich_help_panel=NARROW, cls=ProgramOrRunCommand)
@with_option_records
def bisect(
    name: BisectedArgument,
    options: BisectOptions,
    command: CommandArgument = None,
    into: IntoOption = None,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the step of torch.compile that makes a case or program wrong, or the pass that breaks a kernel.

    CASE: searches torch.compile from the outside to the inside: the stage (Dynamo, AOTAutograd, Inductor),
    the graph, the graph pass, decomposition, lowering, fusion or setting, and the kernel. Each build is
    compiled in a process of its own, and judged as `tracing run` judges.

    PROGRAM: the same of any program, as `python` runs it. It is wrong if it raises, or its exit status is not
    0, and neither happens without torch.compile. COMMAND judges what a build prints, instead: {stdout} and
    {stderr} become the files. A `--` after the program precedes COMMAND.

    RUN: searches the passes of MLIR, LLVM and ptxas that compile one kernel. COMMAND judges each build: exit
    status 0 means good, 125 unknown, any other up to 127 bad. {ttir}, {ttgir}, {llir}, {ptx}, {cubin},
    {amdgcn} and {hsaco} in COMMAND become the paths of the build's artefacts, {dir} that of their folder,
    {ir} and {stage} the path and the language of the IR after a single pass. Without COMMAND, on a GPU,
    replays a launch of each build and compares it with Triton's interpreter.

    --crash needs no COMMAND: it finds the pass in which the compiler dies, and the earlier pass that
    provokes it. After an interruption, the same command continues the search. Details: docs/bisect.md.

    Example: tracing bisect gated_mlp

    Exit status: 0 if the full pipeline is good, 1 if a step or a pass is accused, 2 if there is no answer.
    """
    try:
        with printed_answer("bisect", run_for_answer(into, runs)) as answer:
            words = [name, *(command or [])]
            if is_program(words):
                answer.status = _of_program(words, options, runs, answer, as_json=as_json)
            elif options.no_virtual_gpu:
                raise Problem("--no-virtual-gpu is for a program", "leave it out")
            elif options.good_torch is not None or _names_case(words, options, runs):
                answer.status = _of_case(name, options, runs, answer, as_json=as_json)
            else:
                if options.crash:
                    options.require_judged_by_end(command)
                run = consenting(open_run(name, runs), trust)
                answer.status = _of_run(run, command, options, answer, as_json=as_json)
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command continues the search") from None
    raise typer.Exit(answer.status)


def _names_case(words: list[str], options: BisectOptions, runs: Path) -> bool:
    return not (words[1:] or options.kernel or options.crash) and names_case(words[0], runs)


def _of_program(
    words: list[str], options: BisectOptions, runs: Path, answer: Answering, *, as_json: bool
) -> int:
    options.require_of_program()
    end = words.index("--") if "--" in words else len(words)
    program = program_of(words[:end])
    assert program is not None
    installed_tools.require_compiler()
    from tracing.cli.narrow.bisect.program import ProgramSearch

    search = ProgramSearch(
        program, words[end + 1 :], options.target, options.seed, options.times, options.seconds, runs,
        virtual=not options.no_virtual_gpu,
    )  # fmt: skip
    require_run_of(answer.run, program.name)
    return search.printed(fresh=options.fresh, as_json=as_json)


def _of_case(name: str, options: BisectOptions, runs: Path, answer: Answering, *, as_json: bool) -> int:
    options.require_of_case()
    require_run_of(answer.run, case_name(name))
    require_case(name)
    installed_tools.require_compiler()
    target, seed, seconds = options.target, options.seed or 0, options.seconds
    if options.good_torch is not None:
        from tracing.cli.narrow.bisect.good_torch import search_good_torch

        return search_good_torch(
            name, options.good_torch, target, seed, runs, max(seconds, 600.0), as_json=as_json
        )
    from tracing.cli.narrow.bisect.case import search_case

    return search_case(name, target, seed, options.times, seconds, runs, fresh=options.fresh, as_json=as_json)


def _of_run(
    run: store.Run, command: list[str] | None, options: BisectOptions, answer: Answering, *, as_json: bool
) -> int:
    require_same_triton(run, "bisect it")
    chosen = chosen_kernel(run, options.kernel, crashed=options.crash)
    installed_tools.use_inductors_ptxas()
    require_run_of(answer.run, run.info.case)
    answer.about(run, chosen.kernel_name)
    if options.crash:
        from tracing.cli.narrow.bisect.crash import crash

        return crash(run, chosen, options.seconds, options.repeat, as_json=as_json)
    judge = _judge(run, chosen, command, options)
    # imports Triton, which takes seconds
    from tracing.cli.narrow.bisect.search import search

    return search(run, chosen, judge, options.seconds, options.repeat, fresh=options.fresh, as_json=as_json)


def _judge(run: store.Run, chosen: Compilation, command: list[str] | None, options: BisectOptions) -> Judge:
    if not command:
        if not any(device.name.startswith(_GPUS) for device in Path("/dev").iterdir()):
            step = hints.bisection(run) if hints.can_bisect(run) else f"tracing judge {quote(str(run.path))}"
            raise Problem(
                "there is no GPU, on which the kernel is launched without a COMMAND",
                f"judge by its artefacts: {by_artefacts(run, chosen)}\n  if values are wrong: `{step}`",
            )
        from tracing.cli.narrow.bisect.build_judge import replay_judge

        return replay_judge(run, chosen, options.launch, options.atol, options.rtol, options.seconds)
    options.require_judged_by_command()
    from tracing.compiler.resume import stages_of

    return CommandJudge(command, [one for one in stages_of(chosen) if one in STAGES], options.seconds)
