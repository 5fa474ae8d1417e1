"""What a swap test can replace, and which kernels it found, with the results with and without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from rich.text import Text

from tracing.analyze.replay.swap_plan import Candidate, SwapPlan
from tracing.report.text import plural

_LISTED = 8  # launches whose numbers are written out


def plan_text(planned: SwapPlan) -> Iterator[Text]:
    """The kernels that can be replaced, and with what; then those that cannot, and why."""
    yield from _aligned([row for one in planned.candidates for row in _rows(one)])
    if planned.alike:
        yield Text(f"launched alike in both runs: {', '.join(planned.alike)}")
    for kernel, why in planned.not_covered.items():
        yield not_covered(kernel, why)


def interpreting_text(planned: SwapPlan) -> str:
    """What it costs to interpret all that can be replaced."""
    programs = sum(prod(turn.replacement.grid) for one in planned.candidates for turn in one.turns)
    return f"{plural(programs, 'program')} to interpret in a run, of some 1 ms each"


def not_covered(kernel: str, why: str) -> Text:
    """Why a kernel cannot be replaced."""
    return Text.assemble(("not covered", "yellow"), f": {kernel}: {why}")


def equality(close: bool) -> str:
    """What the results are, if they are as they should be."""
    return "every result agrees with eager" if close else "every result has the bits of a"


def everything_text(count: int, unequal: Sequence[str], equal: str) -> Iterator[Text]:
    """What came of replacing all that can be replaced."""
    if not unequal:
        yield Text(f"{plural(count, 'kernel')} replaced: {equal}")
        return
    yield Text(f"even with {plural(count, 'kernel')} replaced: {', '.join(unequal)}")
    yield Text("the cause is outside of these kernels: what is not covered, operators, the host's code")


def found_text(
    found: Sequence[Candidate], without: Sequence[Sequence[str]], among: int, equal: str
) -> Iterator[Text]:
    """The kernels that are to blame.

    without -- for each of them what differs when it alone is not replaced
    """
    kernels = len({one.kernel for one in found})
    yield Text(f"to blame: {kernels} of {plural(among, 'kernel')}", style="bold red")
    rows = [("kernel", "launches", "without it", "run b → run a")]
    for one, left in zip(found, without, strict=True):
        first, *others = _rows(one)
        rows.append((*first[:2], ", ".join(left), first[2]))
        rows += [(kernel, numbers, "", differs) for kernel, numbers, differs in others]
    yield from _aligned(rows)
    yield Text(f"  with {'it alone' if len(found) == 1 else 'these alone'} replaced, twice: {equal}")


def _rows(one: Candidate) -> Iterator[tuple[str, str, str]]:
    # a row for each way in which the launches of the kernel differ
    ways: dict[str, list[str]] = {}
    for turn in one.turns:
        ways.setdefault(turn.differs, []).append(f"#{turn.index}")
    for number, (differs, launches) in enumerate(ways.items()):
        more = f" and {len(launches) - _LISTED} more" if len(launches) > _LISTED else ""
        yield "" if number else one.kernel, f"{', '.join(launches[:_LISTED])}{more}", differs


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[Text]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield Text("  " + "  ".join(cells).rstrip())
