"""Atomics order programs as far as their memory order says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.launch.memory import happens_before
from tracing.model import MemoryEvidence, NotCovered
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.virtual_gpu import virtual_gpu

PROGRAMS = 4


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Iterator[None]:
    with virtual_gpu():
        yield


@triton.jit
def last_one_sums(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    tl.store(parts + program, tl.load(x + program) * 2)
    if tl.atomic_add(ticket, 1) == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))
        tl.store(ticket, 0)


@triton.jit
def ticket_before_store(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    taken = tl.atomic_add(ticket, 1)
    tl.store(parts + program, tl.load(x + program) * 2)
    if taken == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))


@triton.jit
def relaxed_ticket(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    tl.store(parts + program, tl.load(x + program) * 2)
    if tl.atomic_add(ticket, 1, sem="relaxed") == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))


@triton.jit
def ticket_of_the_block(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    tl.store(parts + program, tl.load(x + program) * 2)
    if tl.atomic_add(ticket, 1, scope="cta") == N - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, N)), 0))


@triton.jit
def scans(x, parts, ready, out, N: tl.constexpr):
    program = tl.program_id(0)
    before = 0.0
    if program > 0:
        while tl.atomic_add(ready + program - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(parts + program - 1)
    tl.store(parts + program, before + tl.load(x + program))
    tl.atomic_xchg(ready + program, 1, sem="release")


@triton.jit
def scans_by_volatile_loads(x, parts, ready, out, N: tl.constexpr):
    program = tl.program_id(0)
    before = 0.0
    if program > 0:
        while tl.load(ready + program - 1, volatile=True) == 0:
            pass
        before = tl.load(parts + program - 1)
    tl.store(parts + program, before + tl.load(x + program))
    tl.atomic_xchg(ready + program, 1)


@triton.jit
def adds_under_a_lock(x, parts, lock, out, N: tl.constexpr):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(lock + 1) == 0:  # the first one stores
        tl.atomic_xchg(lock + 1, 1)
    else:
        value += tl.load(out)
    tl.store(out, value)
    tl.atomic_xchg(lock, 0)


@triton.jit
def opens_the_lock_too_early(x, parts, lock, out, N: tl.constexpr):
    value = tl.load(x + tl.program_id(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    value += tl.load(out)
    tl.atomic_xchg(lock, 0)
    tl.store(out, value)


@triton.jit
def shifts_and_counts(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    tl.store(x + program, tl.load(x + program + 1, mask=program + 1 < N))
    tl.atomic_add(ticket, 1)


@triton.jit
def adds_and_loads(x, parts, ticket, out, N: tl.constexpr):
    program = tl.program_id(0)
    tl.atomic_add(out, tl.load(x + program))
    tl.store(parts + program, tl.load(x + program) / tl.load(out))


CORRECT = [last_one_sums, scans, scans_by_volatile_loads, adds_under_a_lock]
RACES = [
    (ticket_before_store, "parts"),
    (relaxed_ticket, "parts"),
    (ticket_of_the_block, "parts"),
    (opens_the_lock_too_early, "out"),
    (shifts_and_counts, "x"),
]


def recorded(runs: Path, kernel) -> store.Run:
    writer = store.create(runs, INFO)
    with LaunchRecorder(writer):
        shared = torch.zeros(PROGRAMS, dtype=torch.int32)
        kernel[(PROGRAMS,)](torch.rand(PROGRAMS), torch.zeros(PROGRAMS), shared, torch.zeros(1), N=PROGRAMS)
    writer.close()
    return store.Run(writer.path)


@pytest.mark.parametrize("kernel", CORRECT, ids=lambda one: one.__name__)
def test_a_kernel_whose_atomics_order_its_programs_is_not_accused(kernel, tmp_path: Path) -> None:
    run = recorded(tmp_path, kernel)

    assert not list(run.records(MemoryEvidence))
    assert not list(run.records(NotCovered))


@pytest.mark.parametrize(("kernel", "argument"), RACES, ids=lambda one: getattr(one, "__name__", one))
def test_accesses_that_no_atomic_orders_are_a_race(kernel, argument: str, tmp_path: Path) -> None:
    (race,) = recorded(tmp_path, kernel).records(MemoryEvidence)

    assert (race.kind, race.arguments) == ("race", (argument,))
    assert race.what.endswith(": no atomic orders the two")


def test_a_load_of_what_atomics_change_is_not_decided(tmp_path: Path) -> None:
    run = recorded(tmp_path, adds_and_loads)

    assert not list(run.records(MemoryEvidence))
    (undecided,) = run.records(NotCovered)
    assert undecided.what.startswith(
        "whether programs of adds_and_loads race: program (0, 0, 0) loads out[0], and program (1, 0, 0) "
        "changes it by an atomic: no atomic orders the two (test_happens_before.py:"
    )


def test_with_too_many_programs_it_is_not_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(happens_before, "PROGRAMS", PROGRAMS - 1)

    run = recorded(tmp_path, ticket_before_store)

    assert not list(run.records(MemoryEvidence))
    (undecided,) = run.records(NotCovered)
    assert "it has atomics, and more than" in undecided.what
