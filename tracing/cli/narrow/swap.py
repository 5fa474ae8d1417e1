"""`tracing swap`: find the kernels that make the results of two runs differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from enum import Enum
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tracing import environment, store
from tracing.analyze.replay import swap_plan
from tracing.analyze.replay.swap_cache import SwapCache
from tracing.analyze.replay.swap_plan import Candidate, SwapPlan
from tracing.analyze.replay.swap_search import (
    Goal,
    KernelsBlamed,
    Narrowing,
    Running,
    SwapEvent,
    Tried,
    search,
)
from tracing.analyze.runs.recording_commands import case_of, is_virtual, recording, target_of, variables
from tracing.cli.answers import hints
from tracing.cli.answers.kept_answer import printed_answer
from tracing.cli.app import NARROW, RUNS, Json, Runs, app, err, out, progress, silent, spinner
from tracing.cli.options.opened import open_run
from tracing.cli.options.run_pair import Anyway, First, Second, require_comparable
from tracing.cli.options.trust import Trust, consenting
from tracing.environment import installed_tools
from tracing.errors import Problem
from tracing.model import Outcome, Winner
from tracing.model.chips import DEFAULT_TARGET
from tracing.report import swap as report
from tracing.report.text import plural
from tracing.store.recorded_launch import find_launch

if TYPE_CHECKING:
    from tracing.replay.swapped_case import SwappedCase


class VersionOption(str, Enum):
    """The replacement of a kernel."""

    source = "source"
    configuration = "configuration"
    eager = "eager"


@app.command(rich_help_panel=NARROW)
def swap(
    a: First,
    b: Second,
    version: Annotated[
        VersionOption | None,
        typer.Option(
            "--with",
            help="Replace a kernel with the source of A, or with its configuration (constants, num_warps, "
            "grid), not with both; or, on a GPU, with Triton's interpreter.",
        ),
    ] = None,
    each_launch: Annotated[
        bool, typer.Option("--each-launch", help="Find the launches of these kernels, too.")
    ] = False,
    anyway: Anyway = False,
    trust: Trust = False,
    as_json: Json = False,
    runs: Runs = RUNS,
) -> None:
    """Find the kernels of run B that must be launched as run A launched them to give the results of A.

    Runs the case of B repeatedly, each time with other kernels replaced. After an interruption, the same
    command continues the search.

    Example: tracing swap demo-sound demo-faulty

    Exit status: 0 if the results are equal, 1 if kernels are to blame, 2 if the cause is outside of them.
    """
    pair = open_run(a, runs), open_run(b, runs)
    for run in pair:
        swap_plan.results(run)  # a run of a program is refused before `--anyway` is proposed
    require_comparable(pair, anyway=anyway, quiet=as_json)
    for run in pair:
        consenting(run, trust)
    raise typer.Exit(swapped(*pair, version, each_launch, as_json))


def swapped(
    a: store.Run, b: store.Run, version: VersionOption | None, each_launch: bool, as_json: bool = False
) -> int:
    """Find the kernels of b that are to blame for its results, and print them; the status.

    version     -- what they are replaced with; None: a's source and configuration
    each_launch -- find the launches of these kernels, too
    as_json     -- print one JSON object, and nothing else

    After an interruption, it continues where it stopped. b keeps the answer.
    """
    with printed_answer("swap", b) as answer, silent() if as_json else nullcontext():
        fields, blamed = _searched(a, b, version, each_launch)
        answer.status = fields["status"]
        if blamed:
            answer.kernel, answer.launch = blamed[0].kernel, blamed[0].turns[0].index
            answer.rank = store.rank_of(find_launch(b, answer.launch)[0])
            answer.headline = f"to blame: {', '.join(one.kernel for one in blamed)}"
    if as_json:
        print(json.dumps(fields, indent=2))
    return int(fields["status"])


def _searched(
    a: store.Run, b: store.Run, version: VersionOption | None, each_launch: bool
) -> tuple[dict[str, Any], Sequence[Candidate]]:
    # the answer as JSON, and the kernels to blame; prints the answer as text
    wanted = swap_plan.results(a)
    if swap_plan.results(b) == wanted:
        out.print(f"the results are equal: {', '.join(wanted)}; there is nothing to swap kernels for")
        return report.swap_json((a, b), None, [], []), ()
    b.require_trust(f"`{join(recording(b))}`, with kernels of {a.path}")
    a.require_trust(f"the sources of its kernels in `{join(recording(b))}`")
    planned = _planned(a, b, version)
    installed_tools.require_compiler()
    close = version is VersionOption.eager and _agrees(a) and not _agrees(b)
    try:
        with environment.changed(variables(b)), _program(b, close) as program:
            cache = _cache(b, program, close)
            goal = Goal(wanted, swap_plan.results(b), close)
            search_events = search(goal, planned.candidates, cache, program.launched, each_launch=each_launch)
            events = _printed(search_events, close)
    except KeyboardInterrupt:
        raise Problem("interrupted", "the same command continues the search") from None
    blame = events[-1] if isinstance(events[-1], KernelsBlamed) else None
    blamed = blame.candidates if blame else ()
    commands = list(_next(b, blamed))
    if blame:
        _print_end(cache, commands)
    return report.swap_json((a, b), planned, events, commands), blamed


def _planned(a: store.Run, b: store.Run, version: VersionOption | None) -> SwapPlan:
    if is_virtual(b.info.environment) and version is VersionOption.eager:
        raise Problem(
            "without a GPU Triton's interpreter executes every kernel, so `--with eager` replaces nothing",
            "`--with source`, `--with configuration`, or neither",
        )
    planned = swap_plan.plan(a, b, version.value if version else None)
    for line in report.plan_text(planned):
        out.print(line)
    if version is VersionOption.eager:
        err.print(Text(report.interpreting_text(planned), style="dim"))
    if not planned.candidates:
        raise Problem(
            "cannot be decided, because no kernel can be replaced with another",
            f"`{hints.comparison(a, b)}` shows where the runs first differ",
        )
    return planned


def _printed(search_events: Iterable[SwapEvent], close: bool) -> list[SwapEvent]:
    events = []
    with _Printer(close) as printer:
        for event in search_events:
            printer.show(event)
            events.append(event)
    return events


def _print_end(cache: SwapCache, commands: Sequence[str]) -> None:
    verb = "is" if cache.known == 1 else "are"
    known = f"; {cache.known} more {verb} known from earlier searches" if cache.known else ""
    out.print(Text(f"{plural(cache.ran, 'run')} of the case{known}"))
    for command in commands:
        out.print(Text(f"    next      {command}"))


def _agrees(run: store.Run) -> bool:
    # whether the recorded case agreed with torch's eager
    return any(outcome.status in ("passed", "out of bounds") for outcome in run.records(Outcome))


def _program(b: store.Run, close: bool) -> SwappedCase:
    info = b.info
    virtual = is_virtual(info.environment)
    with spinner("importing torch"):
        from tracing.program.device import Device
        from tracing.replay.swapped_case import SwappedCase

        device = Device(target_of(info.environment) if virtual else DEFAULT_TARGET)
    if device.virtual != virtual:
        where = "without a GPU, and here is one" if virtual else "on a GPU, and here is none"
        raise Problem(f"{b.path} was recorded {where}", "record both runs here")
    case = device.load(case_of(info))
    return SwappedCase(case, device, info.seed or 0, eager=close, winners=list(b.records(Winner)))


def _cache(b: store.Run, program: SwappedCase, close: bool) -> SwapCache:
    own = [f"{name}={value}" for name, value in sorted(variables(b).items())]
    content = hashlib.blake2b(Path(b.info.path).read_bytes()).hexdigest()
    installed = [environment.installed(package) for package in ("torch", "triton")]
    info = b.info
    key = [*own, content, info.case, str(info.seed), info.environment.target, *installed, str(close)]
    return SwapCache(b, key, program.run)


class _Printer:
    # prints the events of one search; a status or a progress bar is shown until the next event

    def __init__(self, close: bool) -> None:
        self._equal = report.equality(close)
        self._display = ExitStack()
        self._advance: Callable[[], None] = lambda: None

    def __enter__(self) -> _Printer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._display.close()

    def show(self, event: SwapEvent) -> None:
        """Print one event."""
        if isinstance(event, Tried):
            self._advance()
            return
        self._display.close()
        if isinstance(event, Running):
            self._display.enter_context(spinner(f"running the case {report.running(event)}"))
        elif isinstance(event, Narrowing):
            err.print(Text(report.narrowing(event), style="dim"))
            bar = progress(f"which {event.noun} is to blame", event.most)
            self._advance = self._display.enter_context(bar)
        else:
            for line in report.event_text(event, self._equal):
                out.print(line)


def _next(run: store.Run, blamed: Sequence[Candidate]) -> Iterator[str]:
    first: dict[str, int] = {}  # one launch of each kernel
    for one in blamed:
        first.setdefault(one.kernel, one.turns[0].index)
    for index in first.values():
        _, launch = find_launch(run, index)
        yield from hints.of_launch(run, launch)
