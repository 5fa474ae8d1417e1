"""`tracing bisect`: the step of the compiler that makes a case, or a kernel, wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tracing import store
from tracing.analyze.bisect.judge import STAGES, CommandJudge
from tracing.analyze.bisect.probes import Judge
from tracing.cli.answers.kept_answer import IntoOption, printed_answer, require_run_of, run_for_answer
from tracing.cli.app import NARROW, RUNS, Json, Runs, app
from tracing.cli.narrow.bisect.by_artefacts import by_artefacts
from tracing.cli.narrow.bisect.options import (
    AtolOption,
    BisectedArgument,
    BuildSecondsOption,
    CommandArgument,
    CrashOption,
    FreshOption,
    GoodTorchOption,
    LaunchOption,
    NoVirtualGpuOption,
    RepeatJudgeOption,
    RtolOption,
    TimesOption,
)
from tracing.cli.options.case_or_run import names_case
from tracing.cli.options.chosen_kernel import chosen_kernel
from tracing.cli.options.named import OneKernelOption, RecordSeedOption, TargetOption
from tracing.cli.options.opened import open_run
from tracing.cli.options.program_words import ProgramOrRunCommand, is_program, program_of
from tracing.cli.options.same_triton import require_same_triton
from tracing.cli.options.trust import Trust, consenting
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Compilation
from tracing.model.chips import DEFAULT_TARGET
from tracing.program.case import case_name, require_case

if TYPE_CHECKING:
    from tracing.cli.narrow.bisect.program import ProgramSearch

_GPUS = ("nvidia", "kfd", "dxg")  # devices of NVIDIA, of AMD, and of either under WSL


@app.command(rich_help_panel=NARROW, cls=ProgramOrRunCommand)
def bisect(
    name: BisectedArgument,
    command: CommandArgument = None,
    kernel: OneKernelOption = None,
    launch: LaunchOption = None,
    atol: AtolOption = None,
    rtol: RtolOption = None,
    seconds: BuildSecondsOption = 120.0,
    repeat: RepeatJudgeOption = 1,
    crash: CrashOption = False,
    times: TimesOption = 3,
    target: TargetOption = DEFAULT_TARGET,
    no_virtual_gpu: NoVirtualGpuOption = False,
    seed: RecordSeedOption = None,
    good_torch: GoodTorchOption = None,
    fresh: FreshOption = False,
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
            of_replay: dict[str, object] = {"--launch": launch, "--atol": atol, "--rtol": rtol}
            if is_program(words):
                of_others = {"--kernel": kernel, "--crash": crash, "--good-torch": good_torch}
                _require_no("a program", of_others | of_replay)
                search = _of_program(words, target, seed, times, seconds, runs, virtual=not no_virtual_gpu)
                require_run_of(answer.run, search.program.name)
                answer.status = search.printed(fresh=fresh, as_json=as_json)
            elif no_virtual_gpu:
                raise Problem("--no-virtual-gpu is for a program", "leave it out")
            elif good_torch is not None:
                _require_no("a case", {"--kernel": kernel, "--crash": crash} | of_replay)
                require_run_of(answer.run, case_name(name))
                answer.status = _with_good_torch(name, good_torch, target, seed or 0, runs, seconds, as_json)
            elif not (command or kernel or crash) and names_case(name, runs):
                _require_no("a case", of_replay)
                require_run_of(answer.run, case_name(name))
                answer.status = _of_case(name, target, seed or 0, times, seconds, runs, fresh, as_json)
            else:
                if crash:
                    _require_judged_by_end(command, of_replay)
                run, chosen = _compilation(name, kernel, runs, trust, crash)
                require_run_of(answer.run, run.info.case)
                answer.about(run, chosen.kernel_name)
                if crash:
                    answer.status = _of_crash(run, chosen, seconds, repeat, as_json)
                else:
                    judge = _judge(run, chosen, command, (launch, atol, rtol), seconds)
                    answer.status = _of_kernel(run, chosen, judge, seconds, repeat, fresh, as_json)
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command continues the search") from None
    raise typer.Exit(answer.status)


def _with_good_torch(
    name: str, version: str, target: str, seed: int, runs: Path, seconds: float, as_json: bool
) -> int:
    require_case(name)
    installed_tools.require_compiler()
    from tracing.cli.narrow.bisect.good_torch import search_good_torch

    return search_good_torch(name, version, target, seed, runs, max(seconds, 600.0), as_json=as_json)


def _of_case(
    name: str, target: str, seed: int, times: int, seconds: float, runs: Path, fresh: bool, as_json: bool
) -> int:
    require_case(name)
    installed_tools.require_compiler()
    from tracing.cli.narrow.bisect.case import search_case

    return search_case(name, target, seed, times, seconds, runs, fresh=fresh, as_json=as_json)


def _require_no(what: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value is not None and value is not False:  # 0.0 == False
            raise Problem(
                f"{option} is not for {what}",
                "leave it out, or record a run: `tracing run …`, then `tracing bisect latest --kernel K`",
            )


def _require_judged_by_end(command: list[str] | None, of_replay: Mapping[str, object]) -> None:
    given = [option for option, value in of_replay.items() if value is not None]
    for word in ["COMMAND"] * bool(command) + given:
        raise Problem("--crash judges by how a compile ends", f"leave out {word}, or --crash")


def _of_program(
    words: list[str],
    target: str,
    seed: int | None,
    times: int,
    seconds: float,
    runs: Path,
    *,
    virtual: bool,
) -> ProgramSearch:
    end = words.index("--") if "--" in words else len(words)
    program = program_of(words[:end])
    assert program is not None
    installed_tools.require_compiler()
    from tracing.cli.narrow.bisect.program import ProgramSearch

    return ProgramSearch(program, words[end + 1 :], target, seed, times, seconds, runs, virtual)


def _of_kernel(
    run: store.Run, chosen: Compilation, judge: Judge, seconds: float, repeat: int, fresh: bool, as_json: bool
) -> int:
    # imports Triton, which takes seconds
    from tracing.cli.narrow.bisect.search import search

    return search(run, chosen, judge, seconds, repeat, fresh=fresh, as_json=as_json)


def _of_crash(
    run: store.Run,
    chosen: Compilation,
    seconds: float,
    repeat: int,
    as_json: bool,
) -> int:
    from tracing.cli.narrow.bisect.crash import crash as search_crash

    return search_crash(run, chosen, seconds, repeat, as_json=as_json)


def _compilation(
    name: str, kernel: str | None, runs: Path, trust: bool, crash: bool
) -> tuple[store.Run, Compilation]:
    run = consenting(open_run(name, runs), trust)
    require_same_triton(run, "bisect it")
    chosen = chosen_kernel(run, kernel, crashed=crash)
    installed_tools.use_inductors_ptxas()
    return run, chosen


def _judge(
    run: store.Run,
    chosen: Compilation,
    command: list[str] | None,
    replay: tuple[int | None, float | None, float | None],
    seconds: float,
) -> Judge:
    if not command:
        if not any(device.name.startswith(_GPUS) for device in Path("/dev").iterdir()):
            raise Problem(
                "there is no GPU, on which the kernel is launched without a COMMAND",
                f"judge by its artefacts: {by_artefacts(run, chosen)}",
            )
        from tracing.cli.narrow.bisect.build_judge import replay_judge

        return replay_judge(run, chosen, *replay, seconds)
    if any(one is not None for one in replay):
        raise Problem(
            "--launch, --atol and --rtol have no effect with COMMAND", "leave out these, or COMMAND"
        )
    from tracing.compiler.resume import stages_of

    return CommandJudge(command, [one for one in stages_of(chosen) if one in STAGES], seconds)
