"""What was noticed in a run, what it does not cover, and how it ended, for a terminal."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from rich.text import Text

from tracing.analyze.memory.access_lines import access_line
from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.analyze.memory.uninitialised_reads import UninitialisedRead, uninitialised_reads
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.analyze.runs.unlaunched import reasons_for_no_kernel
from tracing.analyze.runs.winners import changed_by_trials
from tracing.model import Cut, KernelLaunch, MemoryEvidence, Outcome, OutOfBounds
from tracing.model.record import with_fields
from tracing.report.text import Line, outcome_lines, plural
from tracing.report.user_frames import traceback_text, user_frames
from tracing.store import Run, being_recorded, rank_of
from tracing.store.crash import Crash, crashes
from tracing.store.cut_files import cut_files

_UNKNOWN = "a launch that is not recorded"


def ending_text(run: Run, *, whole: bool) -> Iterator[Line]:
    """What was noticed, what was not covered, and how the run ended; whole: with all memory evidence."""
    for line in out_of_bounds_text(run):
        yield Text.assemble(("out of bounds", "yellow"), f": {line}")
    if whole:
        yield from memory_text(run, but=("out of bounds",))
    else:
        yield "wrong use of memory is listed with `--all` only"
    yield from uninitialised_text(run)
    yield from trials_text(run)
    yield from no_kernel_text(run)
    yield from uncovered_text([run])
    for cut in run.records(Cut):
        after = plural(cut.launches, "launch")
        yield Text.assemble(
            ("recorder failed", "yellow"), f": after {after}; the program continued: {cut.error}"
        )
    outcomes = list(run.records(Outcome))
    for outcome in outcomes:
        yield from outcome_lines(f"{outcome.status}: {outcome.detail}")
        yield from traceback_text(run, outcome)
    if not outcomes:
        yield Text.assemble(("unfinished", "yellow"), f": it {unfinished_text(run)}")


def unfinished_text(run: Run) -> str:
    """What is known of a run without an end, in the third person."""
    if being_recorded(run.path):
        return "is still being recorded"
    left = "the process ended inside of the block, or " if run.info.kind == "code" else "the process "
    return f"has no end: {crash_text(run) or f'{left}was killed, or the disk was full'}"


def crash_text(run: Run) -> str:
    """The signal that ended a run without an end, and the line: `Aborted in step (train.py:3)`; or empty."""
    ended = crashes(run.path)
    return f"{ended[0].signal}{crashed_at(ended[0])}" if ended else ""


def crashed_at(crash: Crash) -> str:
    """The innermost line of the user's code: ` in step (train.py:3)`; empty: it is not known."""
    for frame in user_frames(crash.stack):
        if at := re.match(r' *File "(.+)", line (\d+) in (.+)', frame):
            return f" in {at[3]} ({Path(at[1]).name}:{at[2]})"
    return ""


def out_of_bounds_text(run: Run, *, padding: bool = True) -> Iterator[str]:
    """Accesses of kernels outside of their arguments, a line for each argument and each line of a kernel.

    padding -- False: without loads inside the argument's storage, which a kernel may mean
    """
    for rank, launch, one in accesses_outside(run):
        if padding or not one.inside or one.access != "load":
            yield access_outside_sentence(run, rank, launch, one)


def accesses_outside(run: Run) -> Iterator[tuple[int, KernelLaunch | None, OutOfBounds]]:
    """The rank, the launch (None: it is not recorded) and accesses outside of an argument, by process."""
    for process in run.processes(OutOfBounds):
        accesses = run.out_of_bounds(process)
        launches = _launches(run, [process], {one.launch for one in accesses})
        for one in accesses:
            yield rank_of(process), launches.get(one.launch), one


def access_outside_sentence(run: Run, rank: int, launch: KernelLaunch | None, one: OutOfBounds) -> str:
    """A line: `#3 softmax: 56 stores outside of out, first out[100] in program (1, 0, 0) (case.py:9)`."""
    where = access_line(run, rank, launch, one.where) if launch else one.where
    kernel = launch.kernel_name if launch else _UNKNOWN
    return f"#{one.launch} {kernel}: {one.what}" + (f" ({where})" if where else "")


def memory_text(run: Run, but: tuple[str, ...] = ()) -> Iterator[Text]:
    """The memory evidence, a line each.

    but -- kinds that are left out
    """
    for rank, launch, one in evidence_of_launches(run):
        if one.kind not in but:
            yield Text.assemble(("memory", "yellow"), f": {launch_evidence_sentence(run, rank, launch, one)}")


def evidence_of_launches(run: Run) -> Iterator[tuple[int, KernelLaunch | None, MemoryEvidence]]:
    """The rank, the launch (None: it is not recorded) and each memory evidence, rank by rank."""
    for rank in dict.fromkeys(map(rank_of, run.processes())):
        evidence = memory_evidence(run, rank)
        of_rank = [process for process in run.processes() if rank_of(process) == rank]
        launches = _launches(run, of_rank, {one.launch for one in evidence})
        for one in evidence:
            yield rank, launches.get(one.launch), one


def launch_evidence_sentence(run: Run, rank: int, launch: KernelLaunch | None, one: MemoryEvidence) -> str:
    """A line: `#3 of rank 1 softmax: race: program (1, 0, 0) reads x[256], ... (case.py:9)`."""
    of = f" of rank {rank}" if rank else ""
    name = launch.kernel_name if launch else _UNKNOWN
    kernel = f"#{one.launch}{of} {name}: " if one.launch >= 0 else ""
    if launch is not None:
        one = with_fields(one, where=access_line(run, rank, launch, one.where))
    return f"{kernel}{evidence_sentence(one)}"


def _launches(run: Run, processes: Iterable[str], indices: Collection[int]) -> dict[int, KernelLaunch]:
    wanted: dict[int, KernelLaunch] = {}
    for process in processes if indices else ():
        launches = map(run.joiner(process).launch, run.rows(process))
        wanted |= {one.index: one for one in launches if one.index in indices}
    return wanted


def uninitialised_text(run: Run, launch: int | None = None) -> Iterator[Text]:
    """The kernels that read elements which nothing wrote, a line for each argument.

    launch -- only those that this launch is the first to read; None: all
    """
    for one in uninitialised_reads(run):
        if launch in (None, one.launch):
            yield Text.assemble(("uninitialised", "yellow"), f": {uninitialised_sentence(one)}")


def uninitialised_sentence(one: UninitialisedRead) -> str:
    """A line: `#3 softmax: reads 2 elements of x, from [256] on, that nothing wrote`."""
    of = f" of rank {one.rank}" if one.rank else ""
    more = f", and {plural(one.launches - 1, 'later launch')} of it" if one.launches > 1 else ""
    at = f"from [{one.first}] on" if one.count > 1 else f"[{one.first}]"
    what = f"reads {plural(one.count, 'element')} of {one.argument}, {at}, that nothing wrote"
    return f"#{one.launch}{of} {one.kernel}{more}: {what}"


def trials_text(run: Run) -> Iterator[Text]:
    """The arguments that the trials of an autotuner change, a line for each."""
    for one in changed_by_trials(run):
        changes = f"{one.kernel} reads and writes {one.argument}, and each trial of its"
        trials = f"{one.configurations} configurations changes it: name it in reset_to_zero or restore_value"
        yield Text.assemble(("autotuning", "yellow"), f": {changes} {trials}")


def no_kernel_text(run: Run, rank: int | None = None) -> Iterator[Text]:
    """Why a run has no launch of a Triton kernel, a line for each reason.

    rank -- of this rank only; None: of all ranks
    """
    on = f" on rank {rank}" if rank is not None else ""
    for reason in reasons_for_no_kernel(run, rank):
        yield Text.assemble((f"no Triton kernel{on}", "yellow"), f": {reason}")


def uncovered_text(runs: Iterable[Run]) -> Iterator[Text]:
    """The launches and operators that these runs did not cover, and the settings that cover them."""
    for record in dict.fromkeys(record for run in runs for record in not_covered(run)):
        setting = f"to cover it: {record.setting}" if record.setting else "no setting covers it"
        yield Text.assemble(("not covered", "yellow"), f": {record.what}; {setting}")


def cut_text(runs: Iterable[Run]) -> Iterator[Text]:
    """The truncated files of these runs, and the lost records."""
    for run in {run.path: run for run in runs}.values():
        for cut in cut_files(run.path):
            title = "damaged" if cut.damaged else "ends early"
            yield Text.assemble((title, "yellow"), f": {run.name}/{cut.path.name}: {cut.how}")
