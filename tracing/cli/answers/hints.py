"""The next commands to type, for the records that a run holds; missing records are recorded first."""

from __future__ import annotations

from pathlib import Path
from shlex import join, quote

from tracing import store
from tracing.analyze.compare.accused import accused
from tracing.analyze.compare.divergence_kinds import (
    Divergence,
    Host,
    InputDiffers,
    LaunchDiffers,
    OperatorCause,
    OrderDiffers,
    OtherTensor,
    OutputDiffers,
    Overrun,
    ReadOutside,
    StreamCause,
    Uninitialised,
    Writer,
    WrittenElsewhere,
)
from tracing.analyze.passes.pass_table import compilations, passes_of
from tracing.analyze.ranks.rank_divergence import RankDivergence
from tracing.analyze.replay import swap_plan
from tracing.analyze.runs.recording_commands import (
    DEFAULT_TARGET,
    case_of,
    elsewhere,
    is_virtual,
    recording,
    target_of,
    what_ran,
    with_variables,
)
from tracing.analyze.runs.results import differing_results
from tracing.analyze.runs.winners import choices
from tracing.cli.answers.pass_hints import of_passes
from tracing.cli.app import RUNS
from tracing.cli.options.run_pair import RunPair
from tracing.errors import Problem
from tracing.model import Compilation, KeptTensor, KernelLaunch, PassRecord, RunInfo, Selection, StepSelection
from tracing.report.compare.comparison import incomparable
from tracing.store.recorded_launch import find_launch


def of_divergence(divergence: Divergence, runs: RunPair) -> list[str]:
    """The commands that lead from a divergence to its cause; none that the run, or the device, cannot answer.

    A different input leads to the launch or operator that wrote it, never to the passes of the kernel that
    reads it.
    """
    if isinstance(divergence, LaunchDiffers):
        return _of_launch_difference(divergence, runs)
    if isinstance(divergence, OutputDiffers):
        return _of_output(divergence, runs)
    if isinstance(divergence, InputDiffers):
        return _of_input(divergence, runs)
    if isinstance(divergence, OrderDiffers):
        pairs = (divergence.pair, divergence.other)
        launches = sorted(one.b.index for one in pairs if one.b is not None)
        return [_show(runs[1], index) for index in launches]
    side = 0 if divergence.pair.b is None else 1
    return [_show(runs[side], divergence.pair.launch.index)]


def _show(run: store.Run, launch: int) -> str:
    return f"tracing show {quote(str(run.path))} --launch {launch}"


def _of_input(difference: InputDiffers, runs: RunPair) -> list[str]:
    # the producer; without one, the reader: its call site is the line to look at
    assert difference.pair.a is not None and difference.pair.b is not None
    cause, reader = difference.cause, (difference.pair.a.index, difference.pair.b.index)
    if isinstance(cause, OtherTensor):
        return [_show(run, index) for run, index in zip(runs, reader, strict=True)]
    if isinstance(cause, WrittenElsewhere):
        assert cause.writer.a is not None and cause.writer.b is not None
        return [_show(runs[0], cause.writer.a), _show(runs[1], cause.writer.b)]
    if isinstance(cause, Overrun):
        run, index = _made(cause.writer, runs)
        return [_show(run, index), *_reproduced(run, index, difference.pair.rank)]
    if isinstance(cause, Uninitialised):
        producer = [_show(*_made(cause.writer, runs))] if cause.writer else []
        certain = cause.elements is not None  # the interpreter recorded the unwritten elements
        return [*producer, _show(runs[1], reader[1]), *([] if certain else [of_unwritten(runs[1])])]
    if isinstance(cause, StreamCause):
        return [_show(*_made(cause.writer, runs)), _show(runs[1], reader[1]), of_unwritten(runs[1])]
    if isinstance(cause, Host) and cause.writer:
        return [_show(*_made(cause.writer, runs)), _show(runs[1], reader[1])]
    side = 0 if isinstance(cause, OperatorCause | Host) and cause.runs == "a" else 1
    return [_show(runs[side], reader[side])]


def _made(writer: Writer, runs: RunPair) -> tuple[store.Run, int]:
    # a run that has the launch, and its number there
    if writer.b is not None:
        return runs[1], writer.b
    assert writer.a is not None
    return runs[0], writer.a


def _reproduced(run: store.Run, index: int, rank: int) -> list[str]:
    _, launch = find_launch(run, index, rank)
    return _repro(run, launch, rank, is_kept(run, launch, rank))


def _of_output(difference: OutputDiffers, runs: RunPair) -> list[str]:
    launch, rank = difference.pair.b, difference.pair.rank
    assert launch is not None
    if launch.kernel.kind != "triton" or difference.doubt == "addresses":
        return [_show(runs[1], launch.index)]  # the memory at an address was not recorded
    if isinstance(difference.doubt, ReadOutside):
        return [_show(runs[1], launch.index), *_reproduced(runs[1], launch.index, rank)]
    if difference.doubt:
        return [*_replay(runs, difference), *_reproduced(runs[1], launch.index, rank)]
    return [*_replay(runs, difference), *of_launch(runs[1], launch, rank)]


def _replay(runs: RunPair, difference: OutputDiffers) -> list[str]:
    launch, rank = difference.pair.b, difference.pair.rank
    if launch is None or launch.kernel.kind != "triton":
        return []
    whose = f" --rank {rank}" if rank else ""
    of_it = f"--launch {launch.index} --kernel {launch.kernel.hash[:12]}{whose}"
    return [f"tracing replay {quote(str(runs[1].path))} {of_it} --against {quote(str(runs[0].path))}"]


def _of_launch_difference(difference: LaunchDiffers, runs: RunPair) -> list[str]:
    kernel = quote(difference.pair.launch.kernel_name)
    if difference.tuned:
        return [
            f"tracing winners {quote(str(runs[0].path))} --output winners.json",
            _record_anew(runs[1], "--winners", "winners.json"),
        ]
    if any(change.name == "kernel" for change in difference.changes):
        pairs = zip(runs, (difference.pair.a, difference.pair.b), strict=True)
        return [_show(run, launch.index) for run, launch in pairs if launch is not None]
    if difference.code is not None and difference.code.stage != "source":
        return [f"tracing passes {quote(str(run.path))} --kernel {kernel} --changed" for run in runs]
    if not differing_results(*runs):
        return []
    if (swap := of_results(*runs)) is not None:
        return [swap]
    pairs = zip(runs, (difference.pair.a, difference.pair.b), strict=True)
    return [_show(run, launch.index) for run, launch in pairs if launch is not None]


def of_rank_divergence(run: store.Run, divergence: RankDivergence) -> list[str]:
    """The commands that lead from a divergence of ranks to its cause."""
    event = divergence.event
    if event.row is None or event.launched is None:
        return []
    process = next(one for one in run.processes() if store.rank_of(one) == event.rank)
    launch = run.joiner(process).launch(event.row)
    if divergence.kind == "output":
        return of_launch(run, launch, event.rank)
    if divergence.kind != "launch":  # an input differs, or not every rank makes the launch
        return [_show(run, launch.index)]
    tuned = any(one.first.kernel == launch.kernel_name and not one.agreed for one in choices(run))
    winners = [f"tracing winners {quote(str(run.path))}"] if tuned else []
    return [*winners, *_repro(run, launch, event.rank, is_kept(run, launch, event.rank))]


def deciding(divergence: Divergence, runs: tuple[store.Run, store.Run]) -> str | None:
    """The command that settles an uncertain cause; None: the cause is certain."""
    if accused(divergence).certain:
        return None
    facts = None if isinstance(divergence, OutputDiffers) else of_facts(*runs)
    return facts or of_unwritten(runs[1])


def of_facts(a: store.Run, b: store.Run) -> str | None:
    """The command that records both runs completely and compares them; None: they are complete."""
    if all(_has_all(run.info) for run in (a, b)):
        return None
    if b.info.kind != "case":  # standard output belongs to the program, and names no run
        return "; ".join(_record_anew(run, "--operators", "digests") for run in (a, b))
    both = " ".join(f'"$({_record_anew(run, "--operators", "digests")})"' for run in (a, b))
    return f"tracing compare {both}{_anyway(a, b)}"


def _has_all(info: RunInfo) -> bool:
    everything = ("digests", "all", Selection(), StepSelection())
    return (info.operators, info.digests, info.selection, info.steps) == everything


def of_wrong_result(run: store.Run) -> list[str]:
    """The commands that find the launch, and the step of the compiler, that make a case differ from eager."""
    info = run.info
    judged = [f"tracing judge {quote(str(run.path))}"]
    if info.world_size > 1 or info.kind != "case":  # the case of one process is compiled repeatedly
        return judged
    words = [*with_variables(run), "tracing", "bisect", case_of(info)]
    words += ["--seed", str(info.seed)] if info.seed else []
    if is_virtual(info.environment) and target_of(info.environment) != DEFAULT_TARGET:
        words += ["--target", target_of(info.environment)]
    return [*judged, join(words)]


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
            record_anew = _record_anew(run, "--keep-inputs", "--launches", f"{launch}:{launch + 1}")
            commands.append(
                f"{record_anew}; tracing bisect {_latest(run)} --kernel {quote(kernel)} --launch {launch}"
            )
    return [*commands, *of_passes(run, kernel, [] if run.underived() else passes_of(run, compilation))]


def of_launch(run: store.Run, launch: KernelLaunch, rank: int = 0) -> list[str]:
    """The commands for one launch and its kernel; missing records are recorded first.

    Without a GPU the interpreter executes the kernel's source: no pass of the compiler changes a result.
    """
    if launch.kernel.kind != "triton":
        return []
    short, kept = launch.kernel.hash[:12], is_kept(run, launch, rank)
    if is_virtual(run.info.environment):
        return _repro(run, launch, rank, kept)
    compiled = next((one for one in compilations(run) if one.hash == launch.kernel.hash), None)
    if compiled is not None:
        passes = of_kernel(run, short, compiled, launch.index, kept=kept)
    else:
        passes = [f"{_record_anew(run)}; tracing passes {_latest(run)} --kernel {short}"]
    return [*_repro(run, launch, rank, kept), *passes]


def is_kept(run: store.Run, launch: KernelLaunch, rank: int) -> bool:
    """True if a run has the contents of a launch's inputs."""
    kept = (
        (one.launch, one.side)
        for process in run.processes(KeptTensor)
        if store.rank_of(process) == rank
        for one in run.view(process, KeptTensor, KeptTensor)
    )
    return (launch.index, "before") in kept or not any(arg.reads for arg in launch.args)


def _repro(run: store.Run, launch: KernelLaunch, rank: int, kept: bool) -> list[str]:
    if launch.kernel.module is None or launch.kernel.undefined:
        return []
    whose = f" --rank {rank}" if run.info.world_size > 1 else ""
    which = f"--launch {launch.index} --kernel {launch.kernel.hash[:12]}{whose}"
    if kept:
        return [f"tracing repro {quote(str(run.path))} {which}"]
    record_anew = _record_anew(
        run, "--keep-inputs", "--launches", f"{launch.index}:{launch.index + 1}", "--no-passes"
    )
    return [f"{record_anew}; tracing repro {_latest(run)} {which}"]


def _record_anew(run: store.Run, *options: str) -> str:
    return join(recording(run, *options, *_below(run)))


def _latest(run: store.Run) -> str:
    return join(["latest", *_below(run)])


def _below(run: store.Run) -> list[str]:
    # the option for the folder of the runs, unless it is the default folder
    if elsewhere(run.info):
        return ["--runs", str(run.path.parent.absolute())]
    return [] if run.path.parent.absolute() == RUNS.absolute() else ["--runs", str(run.path.parent)]


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
    """The command that distinguishes uninitialised memory from a kernel that is not deterministic."""
    what = what_ran(run.info, "--times", "3", "--perturb")
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
