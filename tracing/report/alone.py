"""What a kernel did by itself, as evidence of a cause: a few lines below the divergence that it explains.

The lines are plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracing.analyze.alone import Alone, Changed
from tracing.model import KernelLaunch

Bits = Mapping[str, str]
_ALONE = "deterministic by itself"
_SURROUNDINGS = (
    "the difference needs its surroundings, as another\n  stream, or memory that was never written"
)


def alone_text(found: Alone, launch: KernelLaunch, recorded: Mapping[str, Bits]) -> Iterator[str]:
    """Whether the kernel is deterministic by itself, where not, and what another left of the same inputs.

    launch   -- of run a
    recorded -- by the names of runs: the bits that this launch left in them
    """
    a, programs = found.a, launch.grid[0] * launch.grid[1] * launch.grid[2]
    where = f"on {found.device}" if found.device else "in the interpreter"
    if not found.device and programs > 1:
        where += ", its programs in another order each time"
    yield f"alone, launch #{launch.index} {launch.kernel_name} on the same inputs, {where}:"
    if a.rate.differing:
        yield f"  {a.rate} differ from the first: the kernel itself is not deterministic"
        yield from _changed(a.changed)
    else:
        yield f"  {a.rate} differ from the first: {_SURROUNDINGS if found.b is None else _ALONE}"
        yield from _unseen(found.device, programs)
    if a.unwritten:
        yield "  elements that keep what the memory held before it, or follow from that:"
        yield from _changed(a.unwritten)
    yield from _as_recorded(found, recorded)
    if found.b is not None:
        yield from _other(found)


def payload_text(found: Alone) -> Iterator[str]:
    """What FpSan says: equal payloads are rounding, others are not."""
    kernels = "the kernels of both runs leave" if found.b else f"{len(found.a.outcomes)} replays leave"
    rates = [one.rate for one in (found.a, found.b) if one]
    if not found.apart and not any(rate.differing for rate in rates):
        yield f"under FpSan {kernels} equal payloads: rounding, of the same operations in another order"
        return
    yield f"under FpSan {kernels} different payloads: not rounding alone; a bug, or the kernels rest on"
    yield "  what FpSan does not keep, as sqrt(x) * sqrt(x) = x"
    yield from _changed(found.apart or found.a.changed or (found.b.changed if found.b else ()))


def _unseen(device: str, programs: int) -> Iterator[str]:
    if not device:
        order = "one program has no other order, and " if programs == 1 else ""
        yield f"  ({order}a race between threads of a program does not show in the interpreter)"


def _changed(found: Iterable[Changed]) -> Iterator[str]:
    for one in found:
        more = ", ..." if sum(behind - first for first, behind in one.ranges) < one.count else ""
        places = ", ".join(f"{first}:{behind}" for first, behind in one.ranges)
        by = f", by up to {one.largest:.3g}" if one.largest else ""
        yield f"    {one.argument}: {one.count} of {one.of} elements, {places}{more}{by}"


def _as_recorded(found: Alone, recorded: Mapping[str, Bits]) -> Iterator[str]:
    counts = {run: found.a.left(bits) for run, bits in recorded.items()}
    of = len(found.a.outcomes)
    if any(counts.values()):
        yield "  " + ", ".join(f"{count} of {of} left what {run} recorded" for run, count in counts.items())
    elif recorded:
        yield "  none left what was recorded: it was compiled anew, on this machine, and memory that was not"
        yield "  recorded was zeros"


def _other(found: Alone) -> Iterator[str]:
    assert found.b is not None
    if not found.apart:
        yield "  b's configuration leaves the same bits of the same inputs: it does not make the difference"
        return
    yield "  b's configuration leaves others of the same inputs:"
    yield from _changed(found.apart)
    if found.b.rate.differing:
        yield f"  and is not deterministic either: {found.b.rate} differ from its first"
