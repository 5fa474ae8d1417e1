"""The next commands to type, for the records that a run holds; missing records are recorded first."""

from __future__ import annotations

from pathlib import Path
from shlex import join, quote

from msgspec.structs import replace

from tracing import store
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.pass_table import passes_of
from tracing.analyze.replay import swap_plan
from tracing.analyze.runs.program_differences import incomparable
from tracing.analyze.runs.recording_commands import (
    command,
    elsewhere,
    is_virtual,
    seed_of,
    target_of,
    what_ran,
    with_variables,
)
from tracing.cli.answers.pass_hints import of_passes
from tracing.cli.answers.recording_hints import (
    below,
    command_without_folder,
    latest,
    record_command,
    runs_option,
)
from tracing.errors import Problem
from tracing.model import (
    Compilation,
    FrameCompile,
    KeptTensor,
    KernelLaunch,
    Outcome,
    PassRecord,
    RunInfo,
    Selection,
    StepSelection,
)
from tracing.model.chips import DEFAULT_TARGET
from tracing.store.recorded_operator import find_operator
from tracing.store.runs import folder_of_runs


def comparison(a: store.Run, b: store.Run) -> str:
    """The command that compares two runs, also those of different programs."""
    return f"tracing compare {join([str(a.path), str(b.path)])}{_anyway(a, b)}"


def of_facts(a: store.Run, b: store.Run) -> str | None:
    """The command that records both runs completely and compares them; None: they are complete."""
    if all(_has_all(run.info) for run in (a, b)):
        return None
    if b.info.kind != "case":
        return _both_anew(a, b)
    both = " ".join(f'"$({record_command(run, "--operators", "digests")})"' for run in (a, b))
    return f"tracing compare {both}{_anyway(a, b)}"


def of_one_seed(a: store.Run, b: store.Run) -> str:
    """The command that records both programs completely, with one seed, and compares them."""
    return _both_anew(a, b, "--seed", "0")


def _both_anew(a: store.Run, b: store.Run, *options: str) -> str:
    # into one folder, as standard output belongs to the program, and names no run
    absolute = any(elsewhere(run.info) for run in (a, b))
    folder = runs_option(folder_of_runs(b.path), absolute=absolute)
    both = "; ".join(
        command_without_folder(run, *options, "--operators", "digests", *folder) for run in (a, b)
    )
    return f"{both}; tracing compare latest~1 {join(['latest', *folder])}{_anyway(a, b)}"


def _has_all(info: RunInfo) -> bool:
    everything = ("digests", "all", Selection(), StepSelection())
    return (info.operators, info.digests, info.selection, info.steps) == everything


def of_seeds(a: store.Run, b: store.Run) -> str | None:
    """The command that records b with the seed of a, and compares; None: the seeds are equal."""
    if a.info.seed == b.info.seed or b.info.kind == "code":
        return None
    info = replace(b.info, seed=a.info.seed)
    recorded = join([*with_variables(b), *elsewhere(info), *command(info, *below(b))])
    return f"{recorded}; tracing compare {quote(str(a.path))} {latest(b)}{_anyway(a, b)}"


def of_wrong_result(run: store.Run) -> list[str]:
    """The commands that find the launch, and the step of the compiler, that make a case differ from eager."""
    judged = [f"tracing judge {quote(str(run.path))}"]
    if run.info.kind != "case" or not can_bisect(run):
        return judged
    if any(one.undeclared or not one.eager_repeats for one in run.records(Outcome)):  # it has no answer then
        return judged
    return [*judged, bisection(run)]


def of_outcome(run: store.Run) -> list[str]:
    """The commands to type next for the results of a case; []: they agree with eager's in every respect."""
    outcome = next(run.records(Outcome), None)
    if outcome is not None and outcome.status == "differs":
        return of_wrong_result(run)
    if outcome is not None and (outcome.status == "not decided" or outcome.other_numbers):
        return [f"tracing judge {quote(str(run.path))}"]
    return []


def bisection(run: store.Run) -> str:
    """The command that finds the step of the compiler that makes a case wrong, or a program fail."""
    info = run.info
    options = seed_of(info)
    if is_virtual(info.environment) and target_of(info.environment) != DEFAULT_TARGET:
        options += ["--target", target_of(info.environment)]
    if info.kind == "program" and info.environment.device == "CPU":
        options += ["--no-virtual-gpu"]
    options += below(run)
    return join([*with_variables(run), *elsewhere(info), "tracing", "bisect", *what_ran(info, *options)])


def can_bisect(run: store.Run) -> bool:
    """True if `bisection` can compile this run's case or program repeatedly, and judge each build.

    A program is judged by its exit status, so one that ended with 0 is not, nor one that compiled nothing.
    """
    outcome = next(run.records(Outcome), None)
    if run.info.ranks_started > 1 or run.info.kind == "code":
        return False
    if run.info.kind == "case":
        return True
    compiled = any(one.traced for one in run.records(FrameCompile))
    return compiled and outcome is not None and outcome.fails


def of_kernel(
    run: store.Run, kernel: str, compilation: Compilation, launch: int | None = None, *, kept: bool = True
) -> list[str]:
    """The commands for the passes of a kernel.

    kernel -- a name that identifies one compilation of the run
    launch -- one of this kernel, which a bisection replays on a GPU. On a virtual GPU the interpreter
              executes the kernel's source, so no pass changes what a launch leaves
    kept   -- the run has the inputs of this launch; else they are recorded first
    """
    of_it = f"{quote(str(run.path))} --kernel {quote(kernel)}"
    commands = [f"tracing passes {of_it}"]
    if launch is not None and not is_virtual(run.info.environment):
        if kept:
            commands.append(f"tracing bisect {of_it} --launch {launch}")
        else:
            record = record_command(run, "--keep-inputs", "--launches", f"{launch}:{launch + 1}")
            commands.append(
                f"{record}; tracing bisect {latest(run)} --kernel {quote(kernel)} --launch {launch}"
            )
    return [*commands, *of_passes(run, kernel, [] if run.underived() else passes_of(run, compilation))]


def source_of(run: store.Run, launch: KernelLaunch) -> str:
    """The command that prints the Python of a launch's kernel; empty if the run does not have it."""
    kept = launch.kernel.source is not None
    return f"tracing show {quote(str(run.path))} --launch {launch.index} --stage python" if kept else ""


def of_launch(run: store.Run, launch: KernelLaunch, rank: int = 0) -> list[str]:
    """The commands for one launch and its kernel; missing records are recorded first.

    Without a GPU the interpreter executes the kernel's source: no pass of the compiler changes a result.
    """
    if launch.kernel.kind != "triton":
        return []
    short, kept = launch.kernel.hash[:12], is_kept(run, launch, rank)
    if is_virtual(run.info.environment):
        return repro_of(run, launch, rank, kept)
    compiled = next((one for one in compilations(run) if one.hash == launch.kernel.hash), None)
    if compiled is not None:
        passes = of_kernel(run, short, compiled, launch.index, kept=kept)
    else:
        passes = [f"{record_command(run)}; tracing passes {latest(run)} --kernel {short}"]
    return [*repro_of(run, launch, rank, kept), *passes]


def is_kept(run: store.Run, launch: KernelLaunch, rank: int) -> bool:
    """True if a run has the contents of a launch's inputs."""
    kept = (
        (one.launch, one.side)
        for process in run.processes(KeptTensor)
        if store.rank_of(process) == rank
        for one in run.view(process, KeptTensor, KeptTensor)
    )
    return (launch.index, "before") in kept or not any(arg.reads for arg in launch.args)


def repro_of(run: store.Run, launch: KernelLaunch, rank: int, kept: bool) -> list[str]:
    """The command that writes a launch as a script, if its kernel can be launched outside of its program."""
    if launch.kernel.module is None or launch.kernel.undefined:
        return []
    whose = f" --rank {rank}" if run.info.world_size > 1 else ""
    which = f"--launch {launch.index} --kernel {launch.kernel.hash[:12]}{whose}"
    if kept:
        return [f"tracing repro {quote(str(run.path))} {which}"]
    record = record_command(
        run, "--keep-inputs", "--launches", f"{launch.index}:{launch.index + 1}", "--no-passes"
    )
    return [f"{record}; tracing repro {latest(run)} {which}"]


def repro_of_operator(run: store.Run, index: int, rank: int) -> list[str]:
    """The command that writes a call of an operator as a script; its inputs are recorded first.

    Empty if no script can contain the call, as that of an operator which draws random numbers.
    """
    # imports torch
    from tracing.replay.operator_call import operator_expression

    whose = f" --rank {rank}" if run.info.world_size > 1 else ""
    recorded = find_operator(run, index, rank)
    try:
        operator_expression(recorded.call)
    except Problem:
        return []
    if not recorded.missing:
        return [f"tracing repro {quote(str(run.path))} --operator {index}{whose}"]
    launches = f"{recorded.call.launch}:{recorded.call.launch + 1}"
    record = record_command(
        run, "--operators", "digests", "--keep-inputs", "--launches", launches, "--no-passes"
    )
    return [f"{record}; tracing repro {latest(run)} --operator {index}{whose}"]


def with_one_seed(run: store.Run) -> list[str]:
    """The command that repeats a program with equal random numbers, unless its run had a seed."""
    if run.info.kind != "program" or run.info.seed is not None or run.info.ranks_started > 1:
        return []
    words = what_ran(run.info, "--seed", "0", *below(run))
    return [join([*elsewhere(run.info), "tracing", "repeat", *words])]


def of_results(a: store.Run, b: store.Run) -> str | None:
    """The command that names the kernels that make two runs differ; None: no kernel can be replaced.

    Cost: a pass over the launches of both runs, about 1 µs each.
    """
    try:
        if not swap_plan.plan(a, b, None).candidates:
            return None
    except Problem:  # runs of several processes
        return None
    return f"tracing swap {quote(str(a.path))} {quote(str(b.path))}{_anyway(a, b)}"


def _anyway(a: store.Run, b: store.Run) -> str:
    return " --anyway" if incomparable(a.info, b.info) else ""


def of_unwritten(run: store.Run) -> str:
    """The command that distinguishes uninitialised memory from a kernel that is not deterministic.

    Of code that `tracing.recording()` surrounds, and of a job, which no command repeats, it is "".
    """
    if run.info.kind == "code" or run.info.ranks_started > 1:
        return ""
    # in a program without a seed the inputs of each run differ already
    what = what_ran(run.info, "--times", "4", "--perturb", *seed_of(run.info, 0), *below(run))
    words = [*with_variables(run), *elsewhere(run.info), "tracing", "repeat", *what]
    return join(words)


def of_unfinished(run: Path, kernel: str, record: PassRecord) -> list[str]:
    """The commands that show a pass that did not end, execute it, and find the pass that provokes it."""
    of_kernel = f"{quote(str(run))} --kernel {quote(kernel)}"
    of_it = f"{of_kernel} --pass {record.index}"
    return [
        f"tracing bisect {of_kernel} --crash",
        f"tracing passes {of_it} > before.mlir",
        f"tracing opt before.mlir --pass-pipeline={quote(record.pipeline)}",
        f"tracing debug {of_it}",
    ]
