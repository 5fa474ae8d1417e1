"""Executes one recorded launch several times on its recorded inputs, and compares the results.

Each replay starts from the same bytes: the kept contents, and zeros everywhere else. Its results are
compared bit by bit with those of the first replay. Two further replays start with other bytes instead of the
zeros: elements that differ in both of them, and were equal before, depend on memory whose content was not
kept.

On a GPU Triton's own launcher executes it. Without a GPU the interpreter executes it, with the programs in
another order in each replay: this detects races between programs, but not between threads of a program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from tracing.digest.host import digest
from tracing.errors import Problem
from tracing.interpreter import permuted
from tracing.model import DifferingElements, Digest, ReplayResult, ReplaySeries, SeriesDifference, Side
from tracing.replay.arguments import Memory, ReplayInputs, Tensors, copied
from tracing.replay.differing import Difference, elements
from tracing.replay.loaded_kernel import LoadedKernel, load_kernel
from tracing.store.recorded_launch import RecordedLaunch

_FILLS = (0xFF, 0x7B)  # bytes that differ in each float: NaN, large numbers


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One launch on the contents of one run's inputs."""

    launched: Side
    launch: RecordedLaunch
    inputs: Side
    given: (
        RecordedLaunch  # the run whose contents are the inputs; tensors of the same names, shapes and dtypes
    )


def replay(asked: Sequence[ReplayRequest], outputs: Sequence[str], times: int) -> ReplayResult:
    """Execute each launch `times` times in addition to the first.

    outputs -- the arguments that are compared

    Memory: that of the arguments five times. A kernel that faults makes CUDA unusable for this process.

    Raises Problem for contents that differ from the recorded digests, and errors of compiling and launching.
    """
    done = [_series(one, outputs, times) for one in asked]
    pairs = combinations(range(len(done)), 2)
    apart = [SeriesDifference((i, j), _differences(done[i][1], done[j][1])) for i, j in pairs]
    differences = [one for one in apart if one.elements]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return ReplayResult(device, tuple(series for series, _ in done), tuple(differences))


def _series(asked: ReplayRequest, outputs: Sequence[str], times: int) -> tuple[ReplaySeries, Tensors]:
    with load_kernel(asked.launch.module) as kernel:
        one = _Replays(asked, outputs, kernel)
        memory = one.memory(0x00)
        one.require_recorded(memory)
        first = one.left(memory, 0)
        outcomes = [_digests(first)]
        varying = {name: Difference.none(tensor) for name, tensor in first.items()}
        for order in range(1, times + 1):
            now = one.left(memory, order)
            changed = {name: Difference.between(first[name], tensor) for name, tensor in now.items()}
            outcomes.append(outcomes[0] | _digests({n: now[n] for n, change in changed.items() if change}))
            varying = {name: varying[name] | change for name, change in changed.items()}
        unwritten = one.unwritten(first, varying)
    written = {n: one.untouched_ranges(first[n].nbytes) for n, one in unwritten.items() if one}
    counts = (tuple(outcomes), elements(varying), elements(unwritten), written)
    return ReplaySeries(asked.launched, asked.inputs, *counts), first


class _Replays:
    # the common parts of the replays of one series

    def __init__(self, asked: ReplayRequest, outputs: Sequence[str], kernel: LoadedKernel) -> None:
        self.asked, self.kernel = asked, kernel
        self.outputs = [name for name in outputs if name in asked.launch.tensors]
        self.inputs = ReplayInputs.of(asked.launch, asked.given)

    def memory(self, fill: int) -> Memory:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return self.inputs.memory(device, fill)

    def require_recorded(self, memory: Memory) -> None:
        """Raise Problem if the inputs differ from those of the recorded launch."""
        tensors, given = self.inputs.tensors(memory), self.asked.given
        for name in given.read.keys() & self.inputs.contents.keys():
            bits = digest(tensors[name]).bits
            if bits != given.read[name]:
                raise Problem(
                    f"the contents of {name} that were kept of launch {given.launch.index} have the digest "
                    f"{bits}, and the launch read {given.read[name]}",
                    f"record a new run: {given.run.path} is damaged, or the input was not quiet",
                )

    def left(self, memory: Memory, order: int) -> Tensors:
        tensors = self.inputs.tensors(copied(memory))
        arguments, grid = self.inputs.arguments(tensors), self.asked.launch.launch.grid
        if torch.cuda.is_available():
            self.kernel.launch(arguments, grid)
            torch.cuda.synchronize()
        else:
            with permuted(order) if order else contextlib.nullcontext():
                self.kernel.interpret(arguments, grid)
        return {name: tensors[name].contiguous() for name in self.outputs}

    def unwritten(self, first: Tensors, varying: dict[str, Difference]) -> dict[str, Difference]:
        # elements that differ with either fill, and did not vary by themselves
        depending: dict[str, Difference] = {}
        for fill in _FILLS:
            filled = self.left(self.memory(fill), 0)
            now = {name: Difference.between(first[name], tensor) for name, tensor in filled.items()}
            depending = {name: depending.get(name, one) & one for name, one in now.items()}
        return {name: one.without(varying[name]) for name, one in depending.items()}


def _differences(a: Tensors, b: Tensors) -> tuple[DifferingElements, ...]:
    alike = [
        name for name in a if name in b and (a[name].shape, a[name].dtype) == (b[name].shape, b[name].dtype)
    ]
    return elements({name: Difference.between(a[name], b[name]) for name in alike})


def _digests(tensors: Tensors) -> dict[str, Digest]:
    return {name: digest(tensor) for name, tensor in tensors.items()}
