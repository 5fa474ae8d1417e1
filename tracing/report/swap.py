"""The launches that a swap test can replace, and the kernels that it blames, with each step's results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from rich.text import Text

from tracing.analyze.replay.swap_plan import Candidate, SwapPlan
from tracing.analyze.replay.swap_search import (
    EverythingReplaced,
    KernelsBlamed,
    Narrowing,
    NothingReplaced,
    NotReplaceable,
    Running,
    SwapEvent,
)
from tracing.model.first_names import first_names
from tracing.report.text import plural
from tracing.store import Run


def plan_text(planned: SwapPlan) -> Iterator[Text]:
    """The replaceable kernels with their replacements, then the other kernels with the reasons."""
    yield from _aligned([row for one in planned.candidates for row in _rows(one)])
    if planned.alike:
        yield Text(f"launched alike in both runs: {', '.join(planned.alike)}")
    for kernel, why in planned.not_covered.items():
        yield not_covered(kernel, why)


def interpreting_text(planned: SwapPlan) -> str:
    """The cost of interpreting all replaceable launches."""
    programs = sum(prod(turn.replacement.grid) for one in planned.candidates for turn in one.turns)
    return f"{plural(programs, 'program')} to interpret in a run, of some 1 ms each"


def not_covered(kernel: str, why: str) -> Text:
    """The reason why a kernel cannot be replaced."""
    return Text.assemble(("not covered", "yellow"), f": {kernel}: {why}")


def equality(close: bool) -> str:
    """The text for results that equal their reference."""
    return "every result agrees with eager" if close else "every result has the bits of a"


def running(event: Running) -> str:
    """The next execution of the case."""
    if event.replaced is None:
        return "once more"
    return f"with {plural(event.replaced, 'kernel')} replaced" if event.replaced else "with nothing replaced"


def narrowing(event: Narrowing) -> str:
    """The cost of the search."""
    count = plural(event.count, event.noun)
    cost = f"{count}: at most {plural(event.most, 'run')} of some {event.seconds:.1f} s"
    return f"{cost}; seldom more than a few for each {event.noun} to blame"


def event_text(
    event: NothingReplaced | NotReplaceable | EverythingReplaced | KernelsBlamed, equal: str
) -> Iterator[Text]:
    """An event of a search.

    equal -- the text for results that are as expected
    """
    if isinstance(event, NothingReplaced):
        yield Text(f"nothing replaced: {', '.join(event.differing)}  ({event.seconds:.1f} s)")
    elif isinstance(event, NotReplaceable):
        yield not_covered(event.kernel, event.why)
    elif isinstance(event, EverythingReplaced):
        yield from _everything_text(event, equal)
    else:
        yield Text()
        yield from _blame_text(event, equal)


def _everything_text(event: EverythingReplaced, equal: str) -> Iterator[Text]:
    if not event.differing:
        yield Text(f"{plural(event.kernels, 'kernel')} replaced: {equal}")
        return
    yield Text(f"even with {plural(event.kernels, 'kernel')} replaced: {', '.join(event.differing)}")
    yield Text("the cause is outside of these kernels: what is not covered, operators, the host's code")


def _blame_text(event: KernelsBlamed, equal: str) -> Iterator[Text]:
    kernels = len({one.kernel for one in event.candidates})
    yield Text(f"to blame: {kernels} of {plural(event.among, 'kernel')}", style="bold red")
    rows = [("kernel", "launches", "without it", "run b → run a")]
    for one, differing in zip(event.candidates, event.without, strict=True):
        first, *others = _rows(one)
        rows.append((*first[:2], ", ".join(differing), first[2]))
        rows += [(kernel, numbers, "", differs) for kernel, numbers, differs in others]
    yield from _aligned(rows)
    these = "only it" if len(event.candidates) == 1 else "only these"
    yield Text(f"  with {these} replaced, twice: {equal}")


def swap_json(
    runs: tuple[Run, Run], planned: SwapPlan | None, events: Sequence[SwapEvent], commands: Sequence[str]
) -> dict[str, Any]:
    """A search as data; keys as in docs/json.md.

    planned -- None: the results are equal, so nothing was searched
    """
    blame = next((one for one in events if isinstance(one, KernelsBlamed)), None)
    everything = next((one for one in events if isinstance(one, EverythingReplaced)), None)
    refused = {one.kernel: one.why for one in events if isinstance(one, NotReplaceable)}
    return {
        "a": str(runs[0].path),
        "b": str(runs[1].path),
        "status": 0 if planned is None else 1 if blame else 2,
        "to_blame": [_blamed(one, without) for one, without in _pairs(blame)],
        "among": everything.kernels if everything else 0,
        "still_differing": list(everything.differing) if everything else [],
        "alike": list(planned.alike) if planned else [],
        "not_covered": {**planned.not_covered, **refused} if planned else {},
        "next": list(commands),
    }


def _pairs(blame: KernelsBlamed | None) -> Iterator[tuple[Candidate, Sequence[str]]]:
    return zip(blame.candidates, blame.without, strict=True) if blame else iter(())


def _blamed(one: Candidate, without: Sequence[str]) -> dict[str, Any]:
    return {
        "kernel": one.kernel,
        "launches": [turn.index for turn in one.turns],
        "differs": list(dict.fromkeys(turn.differs for turn in one.turns)),
        "without": list(without),
    }


def _rows(one: Candidate) -> Iterator[tuple[str, str, str]]:
    # a row for each kind of difference between launches of the kernel
    numbers: dict[str, list[str]] = {}
    for turn in one.turns:
        numbers.setdefault(turn.differs, []).append(f"#{turn.index}")
    for number, (differs, launches) in enumerate(numbers.items()):
        yield "" if number else one.kernel, first_names(launches), differs


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield Text("  " + "  ".join(cells).rstrip())
