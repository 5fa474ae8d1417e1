"""The commands to type next, as far as a run holds what they need; what it lacks is recorded first."""

from __future__ import annotations

from pathlib import Path
from shlex import join, quote

from tracing import store
from tracing.analyze.compare.accused import accused
from tracing.analyze.compare.divergence import Divergence, LaunchDiffers, OutputDiffers
from tracing.analyze.passes.pass_table import compilations, passes_of, telling_pass
from tracing.analyze.runs.rerecording import case_of, is_virtual, recording, with_variables
from tracing.analyze.runs.results import differing_results
from tracing.cli.app import RUNS
from tracing.model import Compilation, KeptTensor, KernelLaunch, PassRecord, RunInfo, Selection
from tracing.report.comparison import incomparable


def of_divergence(found: Divergence, runs: tuple[store.Run, store.Run]) -> list[str]:
    """What can be asked next about a divergence: about the run that shows it, and about what it accuses."""
    who, rank = accused(found), found.pair.rank
    run = runs[0] if who.runs == "a" or found.pair.b is None else runs[1]
    launch = found.pair.b if run is runs[1] else found.pair.a
    assert launch is not None
    if isinstance(found, LaunchDiffers):
        return _of_launch_difference(found, runs)
    if isinstance(found, OutputDiffers):
        return [*_replay(runs, found), *of_launch(run, launch, rank)]
    index = (who.b if run is runs[1] else who.a) if who.kind != "missing" else launch.index
    where = launch.index if index is None else index
    return [f"tracing show {quote(str(run.path))} --launch {where}"]


def _replay(runs: tuple[store.Run, store.Run], found: OutputDiffers) -> list[str]:
    launch, rank = found.pair.b, found.pair.rank
    if launch is None or launch.kernel.kind != "triton":
        return []
    whose = f" --rank {rank}" if rank else ""
    of_it = f"--launch {launch.index} --kernel {launch.kernel.hash[:12]}{whose}"
    return [f"tracing replay {quote(str(runs[1].path))} {of_it} --against {quote(str(runs[0].path))}"]


def _of_launch_difference(found: LaunchDiffers, runs: tuple[store.Run, store.Run]) -> list[str]:
    kernel = quote(found.pair.launch.kernel_name)
    if found.tuned:
        return [
            f"tracing winners {quote(str(runs[0].path))} --output winners.json",
            _again(runs[1], "--winners", "winners.json"),
        ]
    if found.code is not None and found.code.stage != "source":
        return [f"tracing passes {quote(str(run.path))} --kernel {kernel} --changed" for run in runs]
    return [of_results(*runs)] if differing_results(*runs) else []


def deciding(found: Divergence, runs: tuple[store.Run, store.Run]) -> str | None:
    """The command that decides what a divergence leaves open; None: it leaves nothing open."""
    if accused(found).certain:
        return None
    facts = None if isinstance(found, OutputDiffers) else of_facts(*runs)
    return facts or of_unwritten(runs[1])


def of_facts(a: store.Run, b: store.Run) -> str | None:
    """How both runs are compared with all that can be recorded; None: all of it was."""
    if all(_has_all(run.info) for run in (a, b)):
        return None
    both = " ".join(f'"$({_again(run, "--operators", "digests")})"' for run in (a, b))
    return f"tracing compare {both}{_anyway(a, b)}"


def _has_all(info: RunInfo) -> bool:
    return (info.operators, info.digests, info.selection) == ("digests", "all", Selection())


def of_kernel(run: store.Run, kernel: str, compilation: Compilation, launch: int | None = None) -> list[str]:
    """What can be asked about the passes of a kernel; COMMAND stands for one that judges an artefact.

    kernel -- a name that means one compilation of the run
    launch -- one whose inputs were kept: on a GPU it is made again, and needs no command that judges
    """
    of_it = f"{quote(str(run.path))} --kernel {quote(kernel)}"
    artefact = "{ptx}" if compilation.target.startswith("cuda") else "{amdgcn}"
    replayed = launch is not None and not is_virtual(run.info.environment)
    judged = f"--launch {launch}" if replayed else f"-- COMMAND {artefact}"
    commands = [f"tracing passes {of_it}", f"tracing bisect {of_it} {judged}"]
    named = None if run.underived() else telling_pass(passes_of(run, compilation))
    if named is not None:
        of_pass = f"{of_it} --pass {quote(named)}"
        commands += [f"tracing lit {of_pass}", f"tracing debug {of_pass}"]
    return commands


def of_launch(run: store.Run, launch: KernelLaunch, rank: int = 0) -> list[str]:
    """What can be asked about one launch and its kernel; records again what the run does not hold.

    Without a GPU the interpreter executes the kernel's source: no pass of the compiler changes a result.
    """
    if launch.kernel.kind != "triton":
        return []
    short, kept = launch.kernel.hash[:12], _is_kept(run, launch, rank)
    if is_virtual(run.info.environment):
        return _repro(run, launch, rank, kept)
    compiled = next((one for one in compilations(run) if one.hash == launch.kernel.hash), None)
    if compiled is not None:
        passes = of_kernel(run, short, compiled, launch.index if kept else None)
    else:
        passes = [f"{_again(run)}; tracing passes {_latest(run)} --kernel {short}"]
    return [*_repro(run, launch, rank, kept), *passes]


def _is_kept(run: store.Run, launch: KernelLaunch, rank: int) -> bool:
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
    again = _again(run, "--keep-inputs", "--launches", f"{launch.index}:{launch.index + 1}", "--no-passes")
    return [f"{again}; tracing repro {_latest(run)} {which}"]


def _again(run: store.Run, *options: str) -> str:
    return join(recording(run, *options, *_below(run)))


def _latest(run: store.Run) -> str:
    return join(["latest", *_below(run)])


def _below(run: store.Run) -> list[str]:
    # where the command finds what it has recorded, if that is not where it looks by itself
    return [] if run.path.parent == RUNS else ["--runs", str(run.path.parent)]


def of_results(a: store.Run, b: store.Run) -> str:
    """How the kernels are found that make the results of two runs differ."""
    return f"tracing swap {quote(str(a.path))} {quote(str(b.path))}{_anyway(a, b)}"


def _anyway(a: store.Run, b: store.Run) -> str:
    return " --anyway" if incomparable(a.info, b.info) else ""


def of_unwritten(run: store.Run) -> str:
    """How results that may be unwritten in part are told from those of a kernel that is not deterministic."""
    words = [*with_variables(run), "tracing", "repeat", case_of(run.info), "--times", "3", "--perturb"]
    return join(words)


def of_unfinished(run: Path, kernel: str, record: PassRecord) -> list[str]:
    """How a pass that did not end is looked at and run again, alone, and what provokes it."""
    of_kernel = f"{quote(str(run))} --kernel {quote(kernel)}"
    of_it = f"{of_kernel} --pass {record.index}"
    return [
        f"tracing bisect {of_kernel} --crash",
        f"tracing passes {of_it} > before.mlir",
        f"tracing opt before.mlir --pass-pipeline={quote(record.pipeline)}",
        f"tracing debug {of_it}",
    ]
