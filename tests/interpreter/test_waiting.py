"""A program that waits for a later one ends with an error; long loops that get on do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from tracing.errors import Problem
from tracing.interpreter import waiting
from tracing.interpreter.waiting import FIRST
from tracing.virtual_gpu import virtual_gpu

LONG: tl.constexpr = tl.constexpr(3 * FIRST)


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def waits_for_all(arrived, PROGRAMS: tl.constexpr):
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < PROGRAMS:
        pass


@triton.jit
def poll(flag):
    while tl.load(flag, volatile=True) == 0:
        pass


@triton.jit
def waits_in_a_helper(arrived, PROGRAMS: tl.constexpr):
    if tl.program_id(0) == 0:
        poll(arrived)
    tl.atomic_xchg(arrived, 1)


@triton.jit
def waits_by_plain_loads(arrived, PROGRAMS: tl.constexpr):
    tl.store(arrived + tl.program_id(0), 1)
    at = tl.arange(0, PROGRAMS)
    missing = tl.sum((tl.load(arrived + at) == 0).to(tl.int32), 0)
    while missing > 0:
        missing = tl.sum((tl.load(arrived + at) == 0).to(tl.int32), 0)


@triton.jit
def waits_for_a_lock(arrived, PROGRAMS: tl.constexpr):
    while tl.atomic_cas(arrived, 0, 1) == 1:  # nobody opens it
        pass


@pytest.mark.parametrize(
    ("kernel", "line", "program"),
    [
        (waits_for_all, 3, 0),
        (waits_in_a_helper, -4, 0),
        (waits_by_plain_loads, 6, 0),
        (waits_for_a_lock, 2, 1),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_program_that_waits_for_a_later_one_ends_with_an_error(kernel, line: int, program: int) -> None:
    first = kernel.fn.__code__.co_firstlineno
    with pytest.raises(Problem) as raised:
        kernel[(4,)](torch.zeros(4, dtype=torch.int32), PROGRAMS=4)

    waits = (
        rf"{kernel.__name__}: program \({program}, 0, 0\) waits for arrived at {Path(__file__).name}:(\d+), "
    )
    said = re.match(waits, raised.value.problem)
    assert said, raised.value.problem
    assert int(said[1]) == first + line
    assert "so this kernel needs a GPU" in raised.value.problem


@triton.jit
def sums_one_element(x, out):
    total = 0.0
    for _ in range(LONG):
        total += tl.load(x)
    tl.store(out, total)


@triton.jit
def counts_in_memory(x, out):
    while tl.atomic_add(x, 1.0) < LONG - 1:
        pass
    tl.store(out, tl.load(x))


@triton.jit
def gives_up(x, out):
    tries = 0
    while (tl.load(x, volatile=True) != 0) & (tries < LONG):
        tries += 1
    tl.store(out, tries.to(tl.float32))


@triton.jit
def stores_in_turn(x, out):
    place = 0
    while place < LONG:
        tl.store(out, tl.load(x) * place + 1)
        place += 1
    tl.store(out, place.to(tl.float32))


@triton.jit
def advances_a_block(x, out):
    block = tl.make_block_ptr(x, (1,), (1,), (0,), (1,), (0,))
    total = tl.zeros((1,), tl.float32)
    for _ in tl.range(LONG):
        total += tl.load(block, boundary_check=(0,))
        block = tl.advance(block, (0,))
    tl.store(out + tl.arange(0, 1), total)


BLOCK_POINTERS = pytest.mark.skipif(
    tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9), reason="Triton 3.9 removed block pointers"
)


@pytest.mark.parametrize(
    "kernel",
    [
        sums_one_element,
        counts_in_memory,
        gives_up,
        stores_in_turn,
        pytest.param(advances_a_block, marks=BLOCK_POINTERS),
    ],
    ids=lambda one: one.__name__,
)
def test_a_long_loop_that_ends_is_executed_to_its_end(kernel) -> None:
    x, out = torch.ones(1), torch.zeros(1)
    if kernel is counts_in_memory:
        x.zero_()
    kernel[(1,)](x, out)

    assert out.item() == LONG.value


def test_a_program_that_counts_while_it_waits_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "LONG", 2 * FIRST)
    gives_up[(1,)](torch.ones(1), torch.zeros(1))

    said = capfd.readouterr().err
    assert said.startswith(f"tracing: gives_up: program (0, 0, 0) has loaded {2 * FIRST:,} times")
    assert "test_waiting.py:" in said and len(said.splitlines()) == 1
