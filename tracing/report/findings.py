"""What was noticed in a run, what it does not cover, and how it ended, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from tracing.analyze.memory.evidence import evidence_sentence, memory_evidence
from tracing.analyze.memory.uninitialised_reads import uninitialised_reads
from tracing.analyze.runs.recorded_steps import not_covered
from tracing.analyze.runs.unlaunched import reasons_for_no_kernel
from tracing.model import Cut, LaunchLine, Outcome, OutOfBounds
from tracing.report.text import Line, outcome_lines, plural
from tracing.report.user_frames import traceback_text
from tracing.store import Run, being_recorded, rank_of
from tracing.store.cut_files import cut_files


def ending_text(run: Run, *, whole: bool) -> Iterator[Line]:
    """What was noticed, what was not covered, and how the run ended; whole: with all memory evidence."""
    for line in out_of_bounds_text(run):
        yield Text.assemble(("out of bounds", "yellow"), f": {line}")
    if whole:
        yield from memory_text(run, but=("out of bounds",))
    else:
        yield "wrong use of memory is listed with `--all` only"
    yield from uninitialised_text(run)
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
    return "has no end: the process was killed, or the disk was full"


def out_of_bounds_text(run: Run, *, padding: bool = True) -> Iterator[str]:
    """Accesses of kernels outside of their arguments, a line for each argument and each line of a kernel.

    padding -- False: without loads inside the argument's storage, which a kernel may mean
    """
    for process in run.processes(OutOfBounds):
        signatures = run.signatures(process)
        kernels = {
            line.index: signatures[line.signature][0].name
            for line in run.view(process, LaunchLine, LaunchLine)
            if line.signature in signatures
        }
        for one in run.out_of_bounds(process):
            if not padding and one.inside and one.access == "load":
                continue
            kernel = kernels.get(one.launch, "a launch that is not recorded")
            yield f"#{one.launch} {kernel}: {one.what}" + (f" ({one.where})" if one.where else "")


def memory_text(run: Run, but: tuple[str, ...] = ()) -> Iterator[Text]:
    """The memory evidence, a line each.

    but -- kinds that are left out
    """
    names: dict[tuple[int, int], str] = {}
    for rank in dict.fromkeys(map(rank_of, run.processes())):
        evidence = [one for one in memory_evidence(run, rank) if one.kind not in but]
        if evidence:
            names = {(rank, one.index): one.kernel_name for one in run.launches(rank)}
        for one in evidence:
            kernel = names.get((rank, one.launch), "a launch that is not recorded")
            of = f" of rank {rank}" if rank else ""
            launch = f"#{one.launch}{of} {kernel}: " if one.launch >= 0 else ""
            sentence = f": {launch}{evidence_sentence(one)}"
            yield Text.assemble(("memory", "yellow"), sentence)


def uninitialised_text(run: Run, launch: int | None = None) -> Iterator[Text]:
    """The kernels that read elements which nothing wrote, a line for each argument.

    launch -- only those that this launch is the first to read; None: all
    """
    for one in uninitialised_reads(run):
        if launch in (None, one.launch):
            of = f" of rank {one.rank}" if one.rank else ""
            more = f", and {plural(one.launches - 1, 'later launch')} of it" if one.launches > 1 else ""
            at = f"from [{one.first}] on" if one.count > 1 else f"[{one.first}]"
            what = f"reads {plural(one.count, 'element')} of {one.argument}, {at}, that nothing wrote"
            sentence = f": #{one.launch}{of} {one.kernel}{more}: {what}"
            yield Text.assemble(("uninitialised", "yellow"), sentence)


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
