"""Find the line of the program that made a launch, its iteration there, and the lines that it computes."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.analyze.graphs.launch_lines import launch_lines
from tracing.model import CallSite, Kernel, KernelLaunch, LaunchLine, Record
from tracing.store import Run, rank_of
from tracing.store.graph_file import PythonLine


@dataclass(frozen=True, slots=True)
class LaunchOrigin:
    """One launch at its call site."""

    site: CallSite
    iteration: int  # how often this kernel was launched there before
    of: int  # how often it was launched there in all
    computes: tuple[PythonLine, ...] = ()  # of compiled code, whose call site is where the graph begins
    complete: bool = True  # False: the run lacks launches, and only recorded ones are counted

    def __str__(self) -> str:
        of = f"{self.of} there" if self.complete else f"the {self.of} that were recorded there"
        turn = f", call {self.iteration + 1} of {of}" if self.of > 1 else ""
        return f"{self.site}{turn}"


class _Launch(Record, frozen=True):
    index: int
    signature: int
    site: int = -1


def launch_origin(run: Run, rank: int, launch: KernelLaunch) -> LaunchOrigin | None:
    """The call site of a launch; None: it is not known.

    Cost: a pass over the launches of its process, about 1 µs each.
    """
    for process in run.processes():
        if rank_of(process) != rank:
            continue
        sites = run.sites(process)
        lines = list(run.view(process, LaunchLine, _Launch))
        here = next((one for one in lines if one.index == launch.index), None)
        if here is None or here.site not in sites:
            continue
        kernels = {number: kernel for number, (kernel, _) in run.signatures(process).items()}
        there = [
            one.index
            for one in lines
            if one.site == here.site and _same(kernels.get(one.signature), launch.kernel)
        ]
        lines_of_it = launch_lines(run, rank, launch)
        complete = not run.info.steps.partial and run.info.selection.launches is None
        return LaunchOrigin(sites[here.site], there.index(launch.index), len(there), lines_of_it, complete)
    return None


def first_launch(run: Run, kernel_hash: str) -> tuple[int, KernelLaunch] | None:
    """The first launch of a kernel in the first process that launched it, with its rank; None: it has none.

    kernel_hash -- Triton's `metadata.hash`

    Cost: 2 µs for each earlier launch of this process.
    """
    for process in run.processes():
        signatures = run.signatures(process).items()
        of_kernel = {number for number, (kernel, _) in signatures if kernel.hash == kernel_hash}
        rows = run.rows(process) if of_kernel else ()
        row = next((row for row in rows if row.line.signature in of_kernel), None)
        if row is not None:
            return rank_of(process), run.joiner(process).launch(row)
    return None


def only_in(run: Run, other: Run, rank: int, kernel_name: str) -> tuple[CallSite, ...]:
    """The lines from which only `run` launches a kernel, if it also has all lines of the other run.

    Cost: a pass over the launches of a process of each run, about 1 µs each.
    """
    ours, theirs = _lines_of(run, rank, kernel_name), _lines_of(other, rank, kernel_name)
    if not theirs.keys() <= ours.keys():
        return ()  # the program was edited, or is another one
    return tuple(site for line, site in ours.items() if line not in theirs)


def _lines_of(run: Run, rank: int, kernel_name: str) -> dict[tuple[str, int, int], CallSite]:
    launching: dict[tuple[str, int, int], CallSite] = {}
    for process in run.processes():
        if rank_of(process) == rank:
            sites = run.sites(process)
            named = {
                number for number, (one, _) in run.signatures(process).items() if one.name == kernel_name
            }
            lines = run.view(process, LaunchLine, _Launch)
            numbers = {line.site for line in lines if line.signature in named}
            launched = (sites[number] for number in sorted(numbers) if number in sites)
            launching |= {(one.file, one.line, one.instruction): one for one in launched}
    return launching


def _same(one: Kernel | None, other: Kernel) -> bool:
    return one is not None and one.name == other.name
