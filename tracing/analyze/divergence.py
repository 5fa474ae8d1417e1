"""Where two runs of one case first differ.

Launches are compared in launch order. At the first that differs, three answers are possible:

- its launch differs (kernel, grid, num_warps, arguments): another configuration was compiled or chosen;
- an input differs: look at the earlier launch that wrote it, or outside of Triton if none did;
- an output differs while every input is equal: this kernel is not deterministic.

Only what a kernel reads counts as an input, and only what it writes as an output: an output buffer is
uninitialised before its launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from tracing.model import KernelArg, KernelLaunch

Kind: TypeAlias = Literal["launch", "input", "output", "length"]


@dataclass(frozen=True, slots=True)
class Producer:
    """The launch that last wrote a buffer, and whether what it left was still there."""

    index: int
    kernel_name: str
    argument: str
    intact: bool  # False: something outside of Triton wrote the buffer afterwards


@dataclass(frozen=True, slots=True)
class Divergence:
    """One difference between launch `index` of run a and of run b."""

    kind: Kind
    index: int
    kernel_name: str
    argument: str | None  # None: the launch itself differs
    position: int | None
    a: str  # what run a has: digest, or the part of the launch that differs
    b: str
    launch: KernelLaunch  # run a's, or run b's where a has none
    producer: Producer | None = None  # of an input; None: no launch before it wrote that buffer
    operator: str | None = None  # that wrote it outside of Triton, after any launch


def first_divergence(a: Iterable[KernelLaunch], b: Iterable[KernelLaunch]) -> Divergence | None:
    """The first difference between two runs, None if their launches are equal; reads both once."""
    return next(_divergences(a, b), None)


def _divergences(a: Iterable[KernelLaunch], b: Iterable[KernelLaunch]) -> Iterator[Divergence]:
    writers: dict[int, tuple[KernelLaunch, KernelArg]] = {}
    for index, (one, other) in enumerate(zip_longest(a, b)):
        if one is None or other is None:
            here = one or other
            present = f"launch {index}: {here.kernel_name}"
            ended = f"ended after {index} launches"
            both = (present, ended) if one else (ended, present)
            yield Divergence("length", index, here.kernel_name, None, None, *both, here)
            return
        yield from _launch_differs(index, one, other)
        yield from _input_differs(index, one, other, writers)
        yield from _output_differs(index, one, other)
        writers |= {arg.storage: (one, arg) for arg in one.args if arg.storage is not None and _written(arg)}


def _launch_differs(index: int, a: KernelLaunch, b: KernelLaunch) -> Iterator[Divergence]:
    before, after = _configuration(a), _configuration(b)
    different = [name for name in before | after if before.get(name) != after.get(name)]
    if different:
        texts = [", ".join(f"{n}={facts.get(n, 'absent')}" for n in different) for facts in (before, after)]
        yield Divergence("launch", index, a.kernel_name, None, None, texts[0], texts[1], a)


def _configuration(launch: KernelLaunch) -> dict[str, object]:
    kernel = launch.kernel
    facts: dict[str, object] = {
        "kernel": kernel.name,
        "grid": launch.grid,
        "num_warps": kernel.num_warps,
        "num_stages": kernel.num_stages,
        "num_ctas": kernel.num_ctas,
        **kernel.constants,
    }
    return facts | {arg.name: _passed(arg) for arg in launch.args}


def _passed(arg: KernelArg) -> object:
    # devices differ between machines whose runs are compared; layouts and values may not
    tensor = arg.tensor
    return (tensor.dtype, tensor.shape, tensor.stride) if tensor else arg.value


def _input_differs(
    index: int, a: KernelLaunch, b: KernelLaunch, writers: dict[int, tuple[KernelLaunch, KernelArg]]
) -> Iterator[Divergence]:
    for position, (one, other) in enumerate(zip(a.args, b.args, strict=False)):
        if one.reads and other.reads and one.before and other.before and one.before.bits != other.before.bits:
            yield Divergence(
                "input", index, a.kernel_name, one.name, position, one.before.bits, other.before.bits, a,
                _producer(one, writers), one.writer,
            )  # fmt: skip


def _producer(arg: KernelArg, writers: dict[int, tuple[KernelLaunch, KernelArg]]) -> Producer | None:
    found = writers.get(arg.storage) if arg.storage is not None else None
    if found is None:
        return None
    launch, written = found
    same_view = written.tensor == arg.tensor
    intact = not same_view or written.after is None or written.after == arg.before
    return Producer(launch.index, launch.kernel_name, written.name, intact)


def _output_differs(index: int, a: KernelLaunch, b: KernelLaunch) -> Iterator[Divergence]:
    for position, (one, other) in enumerate(zip(a.args, b.args, strict=False)):
        if (
            (_written(one) or _written(other))
            and one.after
            and other.after
            and one.after.bits != other.after.bits
        ):
            yield Divergence(
                "output", index, a.kernel_name, one.name, position, one.after.bits, other.after.bits, a
            )


def _written(arg: KernelArg) -> bool:
    return arg.writes or arg.modified
