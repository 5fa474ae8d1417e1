"""Programs of a launch that are executed together do what they do one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from commands import DATA
from generated import kernels

from tracing import interpreter
from tracing.interpreter.batch import batched_array, choice, launch_memory
from tracing.program.case import import_file
from tracing.upstream.triton import batched_handles

RANDOM_KERNELS = 30


@pytest.fixture(autouse=True)
def nothing_refused() -> Iterator[None]:
    interpreter.forget()
    yield
    interpreter.forget()


def equal(kernel: Any, grid: int, constants: tuple[str, ...] = (), **values: Any) -> str:
    """Why programs were executed one at a time; asserts that together they do the same."""
    together, single = kernels.observed_twice(kernel, values, constants, (grid, 1, 1))

    assert together == single
    return choice.refused(kernel.fn)


def test_random_kernels_do_the_same(tmp_path: Path) -> None:
    refused = []
    for seed in range(RANDOM_KERNELS):
        kernel = kernels.kernel_of(seed, tmp_path)
        together, single = kernels.launched_twice(kernel, seed)

        assert together == single, f"seed {seed}:\n{kernels.source_of(seed)}"
        refused.append(choice.refused(kernel.fn))
    assert refused.count("") > RANDOM_KERNELS / 2, refused  # otherwise it compares little


# ---- groups of programs


@triton.jit
def branching(x, out, n):
    pid = tl.program_id(0)
    if pid % 3 == 0:
        tl.store(out + pid, 1)
    else:
        for k in range(pid):
            tl.store(out + pid, tl.load(out + pid) + k)


def test_programs_of_different_branches_are_executed_in_groups() -> None:
    assert equal(branching, 9, x=torch.ones(9), out=torch.zeros(9), n=9) == ""


@triton.jit
def doubled_before_branching(x):
    pid = tl.program_id(0)
    tl.store(x + pid, tl.load(x + pid) * 2)
    if tl.load(x + pid) > 8:
        tl.store(x + pid, tl.load(x + pid) + 1)


def test_a_store_before_programs_diverge_happens_once() -> None:
    x = torch.arange(8.0)
    assert equal(doubled_before_branching, 8, x=x) == ""

    interpreter.launch(doubled_before_branching, {"x": x}, (), (8, 1, 1))
    assert x.tolist() == [0, 2, 4, 6, 8, 11, 13, 15]


@triton.jit
def persistent(x, out, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), n, tl.num_programs(0)):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at) * tile)


def test_programs_that_take_as_many_steps_from_different_starts_stay_together(
    executed: list[int],
) -> None:
    x = torch.randn(12 * 16)
    assert equal(persistent, 4, ("BLOCK",), x=x, out=torch.zeros(12 * 16), n=12, BLOCK=16) == ""

    assert executed == [4]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many programs each batch had."""
    sizes: list[int] = []
    executing = launch_memory.LaunchMemory.executing

    def noted(self: Any, programs: Any) -> Any:
        sizes.append(len(programs))
        return executing(self, programs)

    monkeypatch.setattr(launch_memory.LaunchMemory, "executing", noted)
    return sizes


@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 3, at < n)


def test_a_batch_is_as_large_as_its_largest_array_allows(
    executed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched_array, "LARGEST", 8 * 64 * 3)  # the pointers of three programs
    assert equal(scaled, 8, ("BLOCK",), x=torch.randn(500), out=torch.zeros(500), n=500, BLOCK=64) == ""

    assert executed[-3:] == [3, 3, 2]


# ---- one at a time


@triton.jit
def total(x, out):
    tl.atomic_add(out, tl.load(x + tl.program_id(0)))


@triton.jit
def chained(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid + 1, tl.load(out + pid) + tl.load(x + pid))


@triton.jit
def last_one_wins(x, out):
    tl.store(out, tl.load(x + tl.program_id(0)))


@triton.jit
def printing(x, out):
    tl.store(out + tl.program_id(0), 1.0)
    print("program", tl.program_id(0))


@triton.jit
def waiting(x, out):
    pid = tl.program_id(0)
    while tl.load(x + pid % 5, volatile=True) + pid < 0:  # of programs 0 and 5 alike
        pass
    tl.store(out + pid, pid)


@triton.jit
def failing(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid, 1.0)
    if pid == 3:
        tl.inline_asm_elementwise("", "=r,r", [pid], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def total_of_some(x, out):
    pid = tl.program_id(0)
    if pid == 0:
        tl.atomic_add(out, 1.0)
    else:
        tl.atomic_add(out, tl.load(x + pid))


@triton.jit
def past_the_end(x, out):
    pid = tl.program_id(0)
    tl.store(out + pid, 1.0)
    tl.store(out + pid * 3, tl.load(x + pid))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (total, "calls create_atomic_rmw"),
        (total_of_some, "calls create_atomic_rmw"),
        (chained, "accesses memory that another program writes"),
        (last_one_wins, "accesses memory that another program writes"),
        (printing, "prints"),
        (waiting, "waits for memory to change"),
        (failing, "Problem"),
        (past_the_end, "accesses other memory than that of one argument"),
    ],
)
def test_programs_that_must_keep_their_order_are_executed_one_at_a_time(
    kernel: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert equal(kernel, 6, x=torch.arange(6.0), out=torch.zeros(8)) == reason

    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == (12 if kernel is printing else 0)  # a line of each program, in both launches


def test_a_debugger_sees_one_program_at_a_time(executed: list[int]) -> None:
    before = sys.gettrace()
    sys.settrace(lambda *event: None)
    try:
        equal(scaled, 4, ("BLOCK",), x=torch.ones(64), out=torch.zeros(64), n=64, BLOCK=16)
    finally:
        sys.settrace(before)

    assert executed == []


def test_a_variable_switches_batches_off(executed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACING_ONE_PROGRAM_AT_A_TIME", "1")
    equal(scaled, 4, ("BLOCK",), x=torch.ones(64), out=torch.zeros(64), n=64, BLOCK=16)

    assert executed == []


def test_this_triton_accepts_batched_arrays() -> None:
    assert batched_handles.failure() == ""


# ---- kernels of common kinds

COMMON: Any = import_file(DATA / "batched_kernels.py")


@pytest.mark.parametrize("name", COMMON.launches())
def test_a_kernel_of_a_common_kind_is_executed_in_batches_with_equal_results(name: str) -> None:
    kernel, values, grid = COMMON.launches()[name]
    constants = tuple(param.name for param in kernel.params if param.is_constexpr)
    together, single = kernels.observed_twice(kernel, values, constants, grid)

    assert together == single
    assert together[0] == choice.refused(kernel.fn) == ""
