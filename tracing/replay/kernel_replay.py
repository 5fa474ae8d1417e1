"""Executes one recorded launch several times on its recorded inputs, and compares the results.

Each replay starts from the same bytes: the kept contents, and zeros everywhere else. Its results are
compared bit by bit with those of the first replay. Two further replays start with other bytes instead of the
zeros: elements that differ in both of them, and were equal before, depend on memory whose content was not
kept, or the launch does not write them. Unwritten elements have the recorded content if the run kept it, so
that digests can be compared.

On a GPU Triton's own launcher executes it. Without a GPU the interpreter executes it, with the programs in
another order in each replay: this detects races between programs, but not between threads of a program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import torch

from tracing.digest.host import digest
from tracing.errors import Problem
from tracing.interpreter import permuted
from tracing.model import DifferingElements, Digest, ReplayResult, ReplaySeries, SeriesDifference, Side
from tracing.record.outputs import load
from tracing.replay.arguments import Memory, ReplayInputs, Tensors, copied, put
from tracing.replay.differing import Difference, chosen, elements
from tracing.replay.loaded_kernel import LoadedKernel, load_kernel
from tracing.replay.untouched_elements import untouched_elements
from tracing.store.recorded_launch import RecordedLaunch

_FILLS = (0xFF, 0x7B)  # bytes that differ in each float: NaN, large numbers
Differences: TypeAlias = dict[str, Difference]  # by argument


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """One launch on the contents of one run's inputs."""

    launched: Side
    launch: RecordedLaunch
    inputs: Side
    # the run whose contents are the inputs; tensors of the same names, shapes and dtypes
    given: RecordedLaunch


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
        left = one.left(memory, 0)
        depending = one.depending(left)
        untouched = one.untouched(depending)
        completed = one.complete(memory, untouched)
        outcomes, varying = one.outcomes(memory, times)
    written = {n: each.untouched_ranges(left[n].nbytes) for n, each in depending.items() if each}
    unwritten = {n: each.without(varying[n] | untouched[n]) for n, each in depending.items()}
    counts = (elements(varying), elements(unwritten), written, elements(untouched), completed)
    return ReplaySeries(asked.launched, asked.inputs, outcomes, *counts), left


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

    def outcomes(self, memory: Memory, times: int) -> tuple[tuple[dict[str, Digest], ...], Differences]:
        # the results of each replay, and the elements that differ in any of them from the first
        first = self.left(memory, 0)
        outcomes = [_digests(first)]
        varying = {name: Difference.none(tensor) for name, tensor in first.items()}
        for order in range(1, times + 1):
            now = self.left(memory, order)
            changed = {name: Difference.between(first[name], tensor) for name, tensor in now.items()}
            outcomes.append(outcomes[0] | _digests({n: now[n] for n, change in changed.items() if change}))
            varying = {name: varying[name] | change for name, change in changed.items()}
        return tuple(outcomes), varying

    def untouched(self, depending: Differences) -> Differences:
        # those of these elements that the launch does not write: they hold what fills the memory
        some = any(depending.values())
        known = untouched_elements(self.asked.launch.launch, self.inputs, self.kernel) if some else {}
        return {
            name: one & Difference(known[name].to(one.mask.device), 0.0)
            if name in known
            else one.without(one)
            for name, one in depending.items()
        }

    def complete(self, memory: Memory, untouched: Differences) -> tuple[str, ...]:
        # gives unwritten elements the recorded contents, of arguments whose contents were kept
        tensors = self.inputs.tensors(memory)
        every = {name: self._recorded(name) for name, one in untouched.items() if one}
        known = {name: content for name, content in every.items() if content is not None}
        for name, content in known.items():
            put(tensors[name], chosen(untouched[name].mask, load(content), tensors[name].contiguous()))
        return tuple(known)

    def _recorded(self, name: str) -> bytes | None:
        # what an argument held after the recorded launch; also known if it held the same bits when it was
        # recorded anew
        launch, anew = self.asked.launch, self.asked.given
        if name in launch.results:
            return launch.run.bytes(launch.results[name])
        bits = [one.expected[name].bits for one in (launch, anew) if name in one.expected]
        same = name in anew.results and len(bits) == 2 and bits[0] == bits[1]
        return anew.run.bytes(anew.results[name]) if same else None

    def depending(self, first: Tensors) -> Differences:
        # elements that differ with either fill
        depending: Differences = {}
        for fill in _FILLS:
            filled = self.left(self.memory(fill), 0)
            now = {name: Difference.between(first[name], tensor) for name, tensor in filled.items()}
            depending = {name: depending.get(name, one) & one for name, one in now.items()}
        return depending


def _differences(a: Tensors, b: Tensors) -> tuple[DifferingElements, ...]:
    alike = [
        name for name in a if name in b and (a[name].shape, a[name].dtype) == (b[name].shape, b[name].dtype)
    ]
    return elements({name: Difference.between(a[name], b[name]) for name in alike})


def _digests(tensors: Tensors) -> dict[str, Digest]:
    return {name: digest(tensor) for name, tensor in tensors.items()}
