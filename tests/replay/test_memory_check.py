"""`tracing replay --check-memory`: one recorded launch in the interpreter, which sees each access."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO
from msgspec.structs import replace

from tracing import store
from tracing.cli.answers.memory_answer import print_memory_check
from tracing.model import KeptAnswer
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.outputs import Keep
from tracing.replay.memory_check import memory_check
from tracing.store.recorded_launch import recorded_launch
from tracing.virtual_gpu import virtual_gpu

DOUBLES, SMOOTHS, READS_TOO_FAR, READS_ITS_BUFFER, SUMS, SUMS_TOO_EARLY, DIVIDES, SCANS = range(8)
GPU = replace(INFO, environment=replace(INFO.environment, device="NVIDIA H100"))


@triton.jit
def doubles(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def smooths(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at + 1, mask=at + 1 < n), mask=at < n)


@triton.jit
def reads_too_far(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at), mask=at < n)


@triton.jit
def last_one_sums(parts, ticket, out, PROGRAMS: tl.constexpr):
    tl.store(parts + tl.program_id(0), 1.0)
    if tl.atomic_add(ticket, 1) == PROGRAMS - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def last_program_sums(parts, ticket, out, PROGRAMS: tl.constexpr):
    tl.store(parts + tl.program_id(0), 1.0)
    tl.atomic_add(ticket, 1)
    if tl.program_id(0) == PROGRAMS - 1:  # which may be the first one to arrive
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def divides_by_sum(parts, ticket, out, PROGRAMS: tl.constexpr):
    tl.atomic_add(out, 1.0)
    tl.store(parts + tl.program_id(0), 1 / tl.load(out))


@triton.jit
def scans(parts, ticket, out, PROGRAMS: tl.constexpr):
    program = tl.program_id(0)
    before = 0.0
    if program > 0:
        while tl.atomic_add(ticket + program - 1, 0) == 0:
            pass
        before = tl.load(parts + program - 1)
    tl.store(parts + program, before + 1)
    tl.atomic_xchg(ticket + program, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    writer = store.create(tmp_path_factory.mktemp("runs"), GPU)
    recorder = LaunchRecorder(writer, keep=Keep(inputs=True), allow_out_of_bounds=True)
    with virtual_gpu(), recorder:
        x, y = torch.rand(100), torch.zeros(100)
        doubles[(2,)](x, y, 100, BLOCK=64)
        smooths[(2,)](x, 100, BLOCK=64)
        reads_too_far[(1,)](x, y, 100, BLOCK=128)
        reads_too_far[(1,)](torch.rand(200)[50:150], y, 100, BLOCK=128)
        for kernel in (last_one_sums, last_program_sums, divides_by_sum, scans):
            tickets = torch.zeros(4, dtype=torch.int32)
            kernel[(4,)](torch.zeros(4), tickets, torch.zeros(1), PROGRAMS=4)
    writer.close()
    return store.Run(writer.path)


def test_a_correct_launch_has_no_evidence(run: store.Run) -> None:
    assert memory_check(recorded_launch(run, DOUBLES)).evidence == ()


def test_a_program_that_reads_what_another_one_writes_is_evidence(run: store.Run) -> None:
    [race] = memory_check(recorded_launch(run, SMOOTHS)).evidence

    assert (race.launch, race.kind, race.arguments) == (SMOOTHS, "race", ("x",))
    assert "writes x[64]" in race.what and "reads it" in race.what


def test_an_access_outside_of_an_argument_is_evidence_with_its_line(run: store.Run) -> None:
    [outside] = memory_check(recorded_launch(run, READS_TOO_FAR)).evidence

    assert (outside.kind, outside.arguments) == ("out of bounds", ("x",))
    assert outside.what.startswith("28 loads outside of x, first x[100] in program")
    assert outside.where == f"{Path(__file__).name}:{reads_too_far.fn.__code__.co_firstlineno + 3}"


def test_an_access_outside_of_an_argument_and_within_its_storage_is_described_as_such(run: store.Run) -> None:
    [outside] = memory_check(recorded_launch(run, READS_ITS_BUFFER)).evidence

    assert outside.what.startswith("28 loads outside of x, within its storage, first x[100] in program")


def test_programs_that_an_atomic_orders_only_in_the_order_of_the_grid_race(run: store.Run) -> None:
    [race] = memory_check(recorded_launch(run, SUMS_TOO_EARLY)).evidence

    assert race.what == (
        "program (2, 0, 0) writes parts[2], and program (3, 0, 0) reads it: no atomic orders the two"
    )


@pytest.mark.parametrize(
    ("launch", "status", "said"),
    [
        (SUMS, 0, "atomics order each program that reads what another program writes"),
        (
            DIVIDES,
            2,
            "not decided whether programs race: program (0, 0, 0) loads out[0], and program (1, 0, 0) ",
        ),
        (SCANS, 0, "only the order of the grid was executed"),
    ],
)
def test_a_kernel_with_atomics_is_checked_for_the_order_that_they_guarantee(
    launch: int, status: int, said: str, run: store.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_memory_check(recorded_launch(run, launch), run.path.parent, as_json=False) == status

    printed = " ".join(capsys.readouterr().out.split())
    assert said in printed
    assert "no program reads memory" not in printed


@pytest.mark.parametrize(("launch", "status"), [(DOUBLES, 0), (READS_TOO_FAR, 1)])
def test_the_command_prints_the_evidence_and_what_is_not_covered(
    launch: int, status: int, run: store.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_memory_check(recorded_launch(run, launch), run.path.parent, as_json=True) == status

    answer = json.loads(capsys.readouterr().out)
    assert (answer["launch"], answer["status"], len(answer["memory_evidence"])) == (launch, status, status)
    assert "shared memory" in answer["not_covered"]
    kept = list(store.Run(run.path).records(KeptAnswer))[-1]
    assert (kept.name, kept.launch, kept.status) == ("replay --check-memory", launch, status)
    assert kept.lines[0].startswith(f"launch #{launch} ")


@pytest.mark.parametrize("installed", [True, False])
def test_compute_sanitizer_is_named_for_a_launch_of_a_gpu_where_it_is_installed(
    installed: bool,
    run: store.Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if installed:
        (tmp_path / "compute-sanitizer").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    print_memory_check(recorded_launch(run, DOUBLES), run.path.parent, as_json=False)

    assert ("compute-sanitizer python repro.py" in capsys.readouterr().out) is installed
