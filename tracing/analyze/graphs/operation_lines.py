"""Name the line of Python of each launch: of compiled code its first operation's, else the call site."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tracing.analyze.graphs.launch_lines import functions_of_graph, lines_of_call
from tracing.model import CallSite, FrameCompile, GraphCall, KernelLaunch, LaunchLine, Record
from tracing.store import Run
from tracing.store.graph_file import PythonLine


class _Launch(Record, frozen=True):
    # the fields of a LaunchLine that are needed
    index: int
    signature: int
    thread: int = 0


@dataclass(frozen=True, slots=True)
class _Operation:
    site: CallSite
    functions: frozenset[str]  # whose lines its graph has


def at_operations(run: Run, process: str) -> Callable[[KernelLaunch], KernelLaunch]:
    """Return a function that replaces the call site of a launch of this process by its operation's line.

    A launch keeps its call site if it was made by hand, if its operations are not recorded or are all in
    torch's code, or if Inductor's cache gave the function the code, and so the lines, of another function.

    Cost: a pass over the launches, 1 µs each, and one more for each compiled graph.
    """
    operations = dict(_operations(run, process))
    compiled = (
        {one.function for one in run.view(process, FrameCompile, FrameCompile)} if operations else set()
    )

    def named(launch: KernelLaunch) -> KernelLaunch:
        operation, site = operations.get(launch.index), launch.site
        if operation is None or (site and site.function in compiled - operation.functions):
            return launch
        return replace(launch, site=operation.site)

    return named


def _operations(run: Run, process: str) -> Iterator[tuple[int, _Operation]]:
    calls = list(run.view(process, GraphCall, GraphCall)) if process in run.processes(GraphCall) else []
    if not calls:
        return
    lines = list(run.view(process, LaunchLine, _Launch))
    indices = [one.index for one in lines]
    known: dict[tuple[int, ...], list[_Operation | None]] = {}  # by graph and signatures: calls repeat
    for call in calls:
        start, stop = (bisect_left(indices, one) for one in call.launches)
        launched = [one for one in lines[start:stop] if one.thread == call.thread]
        key = (call.graph, *(one.signature for one in launched))
        if key not in known:
            of_call = lines_of_call(run, process, call)
            functions = functions_of_graph(run, process, call.graph)
            known[key] = [_first(of_call.get(one.index, ()), functions) for one in launched]
        for one, operation in zip(launched, known[key], strict=True):
            if operation is not None:
                yield one.index, operation


def _first(lines: Sequence[PythonLine], functions: frozenset[str]) -> _Operation | None:
    own = (one for one in lines if not one.is_of_compiler)
    sites = (CallSite(-1, one.file, one.line, one.function) for one in own)
    return next((_Operation(one, functions) for one in sites), None)
