"""A program that is data: launches, operators and writes by the host on four buffers, in loops and threads.

`random_program.py:program=FILE` runs the program that a JSON file holds.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import msgspec
import torch
import triton
import triton.language as tl

from tracing import Workload

SIZE = 64  # elements of a buffer
FRESH = 1024  # elements that are allocated for SIZE of them: the C library does not fill small blocks
M_PERTURB = -6


# ---- what a program is made of ----


class Region(msgspec.Struct, frozen=True):
    """A slice of a buffer, in elements."""

    buffer: int
    start: int = 0
    length: int = SIZE


class Launch(msgspec.Struct, frozen=True, tag=True):
    """A kernel; its regions are as long as one another."""

    kernel: str
    regions: tuple[Region, ...]
    scalar: float = 0.5
    n: int = SIZE  # elements that the kernel reads and writes
    code: int = 0  # which of two kernels of that name


class Operator(msgspec.Struct, frozen=True, tag=True):
    """An operator of torch."""

    name: str
    target: Region
    source: Region
    scalar: float = 0.5


class Host(msgspec.Struct, frozen=True, tag=True):
    """The host writes one element, unseen by torch."""

    how: str
    target: Region
    at: int
    value: float


class Fresh(msgspec.Struct, frozen=True, tag=True):
    """A buffer is allocated anew, and nobody writes it."""

    buffer: int


class Loop(msgspec.Struct, frozen=True, tag=True):
    """Steps, some times."""

    count: int
    steps: tuple[Step, ...]


class Thread(msgspec.Struct, frozen=True, tag=True):
    """Steps in a thread of their own, for which the program waits."""

    steps: tuple[Step, ...]


Step = Launch | Operator | Host | Fresh | Loop | Thread


class Program(msgspec.Struct, frozen=True):
    """Steps, and what no result may depend on."""

    steps: tuple[Step, ...]
    pool: bool = False  # the buffers are slices of one tensor
    gap: int = 32  # elements between them
    garbage: int = 0x55  # bytes in memory that nobody wrote


# ---- kernels: of each name two, whose constant differs ----


def kernels(term: float) -> dict[str, Any]:
    TERM = tl.constexpr(term)

    @triton.jit
    def scale(in_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(in_ptr + at, mask=at < n) * factor + TERM, mask=at < n)

    @triton.jit
    def add(left_ptr, right_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        value = tl.load(left_ptr + at, mask=at < n) + tl.load(right_ptr + at, mask=at < n) * factor
        tl.store(out_ptr + at, value + TERM, mask=at < n)

    @triton.jit
    def bump(ptr, term, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(ptr + at, tl.load(ptr + at, mask=at < n) + term + TERM, mask=at < n)

    @triton.jit
    def total(in_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        value = tl.sum(tl.load(in_ptr + at, mask=at < n, other=0.0))
        tl.store(out_ptr, value * factor + TERM)

    @triton.jit
    def place(in_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)  # the second half of what is written comes first
        value = tl.load(in_ptr + at, mask=at < n) * factor + TERM
        tl.store(out_ptr + (at + n // 2) % n, value, mask=at < n)

    @triton.jit
    def spill(out_ptr, value, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out_ptr + at, at * value + TERM, mask=at < n + 8)

    return {kernel.__name__: kernel for kernel in (scale, add, bump, total, place, spill)}


KERNELS = kernels(0.25), kernels(1.25)


# ---- execution ----


class Machine:
    """Four buffers, and what a step does with them."""

    def __init__(self, program: Program, values: torch.Tensor) -> None:
        self.garbage = program.garbage
        self.weights = torch.linspace(0, 0.25, SIZE, device=values.device).view(8, 8)
        if program.pool:
            stride = SIZE + program.gap
            pool = torch.zeros(len(values) * stride, device=values.device)
            self.buffers = [pool[i * stride : i * stride + SIZE] for i in range(len(values))]
            for buffer, value in zip(self.buffers, values, strict=True):
                buffer.copy_(value)
        else:
            self.buffers = [value.clone() for value in values]

    def run(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            getattr(self, type(step).__name__.lower())(step)

    def at(self, region: Region) -> torch.Tensor:
        return self.buffers[region.buffer][region.start : region.start + region.length]

    def launch(self, step: Launch) -> None:
        tensors = [self.at(region) for region in step.regions]
        KERNELS[step.code][step.kernel][(1,)](*tensors, step.scalar, step.n, BLOCK=2 * SIZE)

    def operator(self, step: Operator) -> None:
        target, source = self.at(step.target), self.at(step.source)
        if step.name == "add_":
            target.add_(step.scalar)
        elif step.name == "mul_":
            target.mul_(step.scalar)
        elif step.name == "copy_":
            target.copy_(source)
        elif step.name == "sub_":
            target.sub_(source)
        elif step.name == "cat":
            target.copy_(torch.cat([source[8:], source[:8]]))
        elif step.name == "mm":
            torch.mm(source.view(-1, 8), self.weights, out=target.view(-1, 8))
        elif step.name == "column":
            target.view(-1, 8)[:, 3].fill_(step.scalar)
        else:
            self.buffers[step.target.buffer] = torch.sin(self.buffers[step.target.buffer])

    def host(self, step: Host) -> None:
        target = self.at(step.target)
        if step.how == "numpy":
            target.numpy()[step.at] = step.value
        elif step.how == "view":
            target.view(-1, 8).t().numpy()[step.at % 8, step.at // 8] = step.value
        else:
            ctypes.c_float.from_address(target.data_ptr() + 4 * step.at).value = step.value

    def fresh(self, step: Fresh) -> None:
        library = ctypes.CDLL(None)
        library.mallopt(M_PERTURB, self.garbage)
        self.buffers[step.buffer] = torch.empty(FRESH, device=self.weights.device)[:SIZE]
        library.mallopt(M_PERTURB, 0)

    def loop(self, step: Loop) -> None:
        for _ in range(step.count):
            self.run(step.steps)

    def thread(self, step: Thread) -> None:
        thread = threading.Thread(target=self.run, args=(step.steps,))
        thread.start()
        thread.join()


SAMPLE = Program((Launch("scale", (Region(0), Region(1))),))


def build(device: str, program: str = "") -> Workload:
    given = msgspec.json.decode(Path(program).read_bytes(), type=Program) if program else SAMPLE
    return workload(given, device)


def workload(program: Program, device: str) -> Workload:
    @torch.compiler.disable
    def run(values: torch.Tensor) -> list[torch.Tensor]:
        machine = Machine(program, values)
        machine.run(program.steps)
        return machine.buffers

    return Workload(lambda values: run(values), (torch.rand(4, SIZE, device=device) + 0.5,))
