"""The launches of a run for a report: columns for the table of all, blocks of rows for one in full.

The page reads the columns at once, 100,000 launches in a fraction of a second; a block with the arguments and
digests of 1,024 launches is decoded when a person opens one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from tracing.analyze.graphs.operation_lines import at_operations
from tracing.model import Digest, KernelArg, KernelLaunch
from tracing.report.html.chunks import Chunks
from tracing.report.run_json import scalar
from tracing.report.text import tensor_text
from tracing.store import Run, rank_of

BLOCK = 1024  # launches in a chunk
DIGITS = 16  # of a digest: 64 bits, which do not compress, distinguish the tensors of two runs
LaunchKey: TypeAlias = tuple[int, int]  # rank, index

# Bits of the column "flags".
NAN, INF, DIVERGES, UNFINISHED, EVIDENCE = 1, 2, 4, 8, 16


@dataclass(slots=True)
class LaunchColumns:
    """The table of all launches of a run, column by column."""

    rank: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    kernel: list[int] = field(default_factory=list)  # position in the report's list of the run's kernels
    stream: list[int] = field(default_factory=list)  # position in `streams`
    phase: list[int] = field(default_factory=list)  # 0: forward, 1: backward
    step: list[int] = field(default_factory=list)  # -1: none
    site: list[int] = field(default_factory=list)  # position in `sites`; -1: unknown
    flags: list[int] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)  # -1: not measured
    device_us: list[float] = field(default_factory=list)


@dataclass(slots=True)
class ReportedKernel:
    """One kernel of a run with the sums of its launches; several processes of a job launch one kernel."""

    launch: KernelLaunch  # its first
    count: int = 0
    wall_us: float = 0.0
    device_us: float = 0.0
    flags: int = 0


@dataclass(slots=True)
class RunLaunches:
    """The launches of a run, and the sums over the launches of each kernel."""

    columns: LaunchColumns = field(default_factory=LaunchColumns)
    streams: list[int] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)  # numbers of chunks
    kernels: dict[str, ReportedKernel] = field(default_factory=dict)  # by name and hash

    def data(self, chunks: Chunks) -> dict[str, Any]:
        """The part of the index that describes the launches; adds the columns as a chunk."""
        names = LaunchColumns.__slots__
        columns = chunks.add({name: getattr(self.columns, name) for name in names})
        return {
            "count": len(self.columns.index), "block": BLOCK, "columns": columns, "blocks": self.blocks,
            "streams": self.streams, "sites": self.sites,
        }  # fmt: skip


def launch_data(run: Run, chunks: Chunks, flags: Mapping[LaunchKey, int]) -> RunLaunches:
    """Read every launch of a run once; about 40 µs each, most of it for digests.

    flags -- results of other analyses for a launch: DIVERGES, EVIDENCE
    """
    known = RunLaunches()
    rows = _rows(run, known, flags)
    while block := list(islice(rows, BLOCK)):
        known.blocks.append(chunks.add(_block(block)))
    return known


def kernel_key(launch: KernelLaunch) -> str:
    """The identity of a kernel in a report."""
    return f"{launch.kernel_name} {launch.kernel.hash}"


def _rows(run: Run, known: RunLaunches, flags: Mapping[LaunchKey, int]) -> Iterator[KernelLaunch]:
    numbers: dict[str, int] = {}
    streams: dict[int, int] = {}
    sites: dict[str, int] = {}
    for process in run.processes():
        rank = rank_of(process)
        joined = map(run.joiner(process).launch, run.rows(process))
        for launch in map(at_operations(run, process), joined):
            mark = flags.get((rank, launch.index), 0) | _flags(launch)
            columns, key, time = known.columns, kernel_key(launch), launch.time
            columns.rank.append(rank)
            columns.index.append(launch.index)
            columns.kernel.append(numbers.setdefault(key, len(numbers)))
            columns.stream.append(streams.setdefault(launch.stream, len(streams)))
            columns.phase.append(int(launch.phase == "backward"))
            columns.step.append(launch.step[0] if launch.step else -1)
            columns.site.append(sites.setdefault(str(launch.site), len(sites)) if launch.site else -1)
            columns.flags.append(mark)
            columns.wall_us.append(round(time.wall_us, 1) if time else -1)
            device = time.device_us if time else None
            columns.device_us.append(-1 if device is None else round(device, 2))
            _count(known.kernels.setdefault(key, ReportedKernel(launch)), launch, mark)
            yield launch
    known.streams, known.sites = list(streams), list(sites)


def _count(kernel: ReportedKernel, launch: KernelLaunch, flags: int) -> None:
    kernel.count += 1
    kernel.flags |= flags
    if launch.time is not None:
        kernel.wall_us += launch.time.wall_us
        kernel.device_us += launch.time.device_us or 0.0


def _flags(launch: KernelLaunch) -> int:
    left = [arg.after for arg in launch.args if arg.after is not None and (arg.writes or arg.modified)]
    return (
        NAN * any(one.nan for one in left)
        | INF * any(one.inf for one in left)
        | UNFINISHED * (not launch.finished)
    )


def _block(launches: Iterable[KernelLaunch]) -> dict[str, Any]:
    # arguments and digests repeat from launch to launch: each is in the block once
    digests: dict[Digest, int] = {}
    arguments: dict[tuple[object, ...], int] = {}

    def numbered(digest: Digest | None) -> int:
        return -1 if digest is None else digests.setdefault(digest, len(digests))

    rows = []
    for launch in launches:
        args = [
            [
                arguments.setdefault(_argument(arg), len(arguments)),
                -1 if arg.storage is None else arg.storage,
                numbered(arg.before),
                numbered(arg.after),
            ]
            for arg in launch.args
        ]
        hashes = launch.hashes
        user = [hashes.before, hashes.after] if hashes else None
        rows.append([list(launch.grid), launch.thread, launch.device, args, user])
    return {"rows": rows, "arguments": list(arguments), "digests": [_digest(one) for one in digests]}


def _argument(arg: KernelArg) -> tuple[object, ...]:
    if arg.tensor is None:
        return (arg.name, arg.declared, None, None, str(scalar(arg.value)), None)
    layout = f"stride {list(arg.tensor.stride)}, offset {arg.tensor.offset}, {arg.tensor.device}"
    return (arg.name, arg.declared, tensor_text(arg.tensor), layout, None, arg.writer)


def _digest(one: Digest) -> list[object]:
    return [one.bits[:DIGITS], one.l1, one.nan, one.inf, one.negative_zero]
