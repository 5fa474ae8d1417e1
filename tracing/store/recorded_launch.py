"""Collects the inputs for a replay of one launch: code, arguments, and the contents of tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

from tracing.digest.columns import Row
from tracing.errors import Problem
from tracing.model import Blob, Descriptor, Digest, KeptTensor, KernelArg, KernelLaunch
from tracing.store.kernel_file import brief, descriptors, kernel_file
from tracing.store.reader import Run, rank_of

Number: TypeAlias = bool | int | float | None


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One launch of a run, ready for a replay."""

    run: Run
    process: str
    launch: KernelLaunch
    module: str  # Python text that defines KERNEL, CONSTANTS, OPTIONS, and perhaps FIELDS
    inputs: Mapping[str, Blob]  # contents before the launch that were kept, by argument: safetensors files
    missing: tuple[str, ...]  # arguments that the kernel reads, and whose contents were not kept
    results: Mapping[str, Blob] = field(default_factory=dict)  # contents after it that were kept, by argument

    @property
    def tensors(self) -> dict[str, KernelArg]:
        """The arguments that are tensors, by name."""
        return {arg.name: arg for arg in self.launch.args if arg.tensor is not None}

    @property
    def values(self) -> dict[str, Number]:
        """The arguments that are neither tensors nor constants; raises Problem if one is not a number."""
        constants = self.launch.kernel.constants
        return {a.name: _number(a) for a in self.launch.args if a.tensor is None and a.name not in constants}

    @property
    def descriptors(self) -> dict[str, Descriptor]:
        """How tensors are described to the kernel, of those that are passed by a descriptor."""
        return {arg.name: arg.descriptor for arg in self.launch.args if arg.descriptor is not None}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arguments that the kernel is declared to write, or that changed."""
        return tuple(name for name, arg in self.tensors.items() if arg.writes or arg.modified)

    @property
    def expected(self) -> dict[str, Digest]:
        """The recorded digests of the launch's results."""
        after = {name: self.tensors[name].after for name in self.outputs}
        return {name: digest for name, digest in after.items() if digest is not None}

    @property
    def read(self) -> dict[str, str]:
        """The recorded digests of the launch's inputs."""
        return {name: arg.before.bits for name, arg in self.tensors.items() if arg.reads and arg.before}

    def contents(self) -> dict[str, bytes]:
        """The safetensors files of the kept inputs, by argument; raises Problem if one is missing."""
        return {name: self.run.bytes(blob) for name, blob in self.inputs.items()}


def recorded_launch(
    run: Run, index: int, rank: int | None = None, kernel: str | None = None
) -> RecordedLaunch:
    """Collect everything that is needed to execute launch `index` of a run.

    rank   -- the rank of the launch; None: the only process with such a launch
    kernel -- the expected kernel, by name or by the first digits of its hash

    Raises Problem, with the reason, if there is no such launch, if it belongs to another kernel, if its
    kernel cannot be launched outside of its program, or if another user recorded the run.
    """
    process, launch = find_launch(run, index, rank)
    if kernel is not None:
        _require_kernel(run, process, launch, kernel)
    if sum(arg.descriptor is not None for arg in launch.args) < descriptors(run, launch.kernel):
        raise Problem(
            f"{launch.kernel_name} takes a tensor descriptor of a kind that was not recorded",
            "create it in the kernel, or pass one of triton.tools.tensor_descriptor; record the run anew",
        )
    source = f"{run.path}/blobs/{launch.kernel.module}.zst" if launch.kernel.module else "unknown"
    run.require_trust(f"the source of {launch.kernel_name}: {source}")
    kept = [one for one in run.view(process, KeptTensor, KeptTensor) if one.launch == index]
    inputs, results = (
        {launch.args[one.position].name: one.blob for one in kept if one.side == side}
        for side in ("before", "after")
    )
    missing = tuple(arg.name for arg in launch.args if arg.reads and arg.name not in inputs)
    return RecordedLaunch(run, process, launch, kernel_file(run, launch.kernel), inputs, missing, results)


def find_launch(run: Run, index: int, rank: int | None = None) -> tuple[str, KernelLaunch]:
    """Launch `index` of a run, and the process that made it.

    rank -- whose; None: of the one process that has such a launch

    Raises Problem if there is none, or more than one.
    """
    processes = [one for one in run.processes() if rank in (None, rank_of(one))]
    indices: list[int] = []
    having: list[tuple[str, Row]] = []
    for process in processes:
        for row in run.rows(process):
            indices.append(row.line.index)
            having += [(process, row)] if row.line.index == index else []
    lists = f"`tracing show {run.path}` lists them"
    if len(having) > 1:
        raise Problem(
            f"{len(having)} processes of {run.path} have a launch {index}",
            f"name its rank: `--rank R`; {lists}",
        )
    if not having:
        first = max(map(run.first_launch, processes), default=0)
        deleted = f"; launches 0:{first} were deleted while it was recorded" if 0 <= index < first else ""
        if rank is not None and not processes:
            raise Problem(
                f"{run.path} has no launches of rank {rank}", f"`tracing show {run.path}` lists its launches"
            )
        raise Problem(f"{run.path} has no launch {index}: {launches_text(indices)}{deleted}", lists)
    process, row = having[0]
    return process, run.joiner(process).launch(row)


def launches_text(indices: Collection[int]) -> str:
    """The launches that a run has, in words: "its launches are 0 to 7"."""
    return f"its launches are {min(indices)} to {max(indices)}" if indices else "it has no launches"


def launches_of(run: Run, process: str, kernel: str) -> list[int]:
    """The launches of the kernels of one name, in launch order; 2 µs for each launch of the process."""
    signatures = run.signatures(process)
    mine = {number for number, (one, _) in signatures.items() if one.name == kernel}
    return [row.line.index for row in run.rows(process) if row.line.signature in mine]


def call_order(run: Run, process: str, launch: KernelLaunch) -> int | None:
    """The number of launches of kernels of the same name before a launch.

    None if that is not known, because some launch before it was not recorded.
    """
    earlier = sum(row.line.index < launch.index for row in run.rows(process))
    if earlier != launch.index:
        return None
    return launches_of(run, process, launch.kernel_name).index(launch.index)


def same_call(run: Run, process: str, launch: KernelLaunch, other: Run) -> int:
    """The launch of another run that is the same call of the same kernel: its n-th launch, in one process.

    If the call of a launch is unknown, the launch with the same index is used, if its kernel is the same.

    Raises Problem if there is none, or if the other run has several processes of the launch's rank.
    """
    theirs = [one for one in other.processes() if rank_of(one) == rank_of(process)]
    if len(theirs) != 1:
        raise Problem(f"{other.path} has {len(theirs)} processes of rank {rank_of(process)}", "name a launch")
    calls, order = launches_of(other, theirs[0], launch.kernel_name), call_order(run, process, launch)
    if order is not None and order < len(calls):
        return calls[order]
    if order is None and launch.index in calls:
        return launch.index
    which = f"launch {launch.index}" if order is None else f"a call {order}"
    raise Problem(
        f"{other.path} has no {which} of {launch.kernel_name}, from 0, as {run.path} has",
        f"`tracing show {other.path}` lists its launches",
    )


def _number(arg: KernelArg) -> Number:
    if isinstance(arg.value, str) and arg.value.startswith("<"):
        raise Problem(
            f"the argument {arg.name} is {brief(arg.value)}, and what it points to was not recorded",
            "replay it in its own program",
        )
    if isinstance(arg.value, str):
        raise Problem(
            f"the argument {arg.name} was recorded as {brief(arg.value)}, which is no number",
            "replay it in its own program",
        )
    return arg.value


def _require_kernel(run: Run, process: str, launch: KernelLaunch, wanted: str) -> None:
    name, digits = launch.kernel_name, launch.kernel.hash
    if wanted == name or (wanted and digits.startswith(wanted)):
        return
    signatures = run.signatures(process).items()
    mine = {n for n, (one, _) in signatures if one.name == wanted or one.hash.startswith(wanted)}
    theirs = [str(row.line.index) for row in run.rows(process) if row.line.signature in mine]
    where = f"its launches: {', '.join(theirs[:8])}{', ...' if len(theirs) > 8 else ''}"
    raise Problem(
        f"launch {launch.index} of {run.path} is of {name} ({digits[:12]}), not of {wanted}",
        where if theirs else near_launched(run, wanted),
    )


def near_launched(run: Run, wanted: str) -> str:
    """The launched kernels whose names are like one that no launch has; or where they are listed."""
    names = {one.name for process in run.processes() for one, _ in run.signatures(process).values()}
    near = get_close_matches(wanted.partition("#")[0], sorted(names), n=3, cutoff=0.5)
    return f"nearest: {', '.join(near)}" if near else f"`tracing show {run.path}` lists its launches"
