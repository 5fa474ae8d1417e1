"""Memory that two launches do not access may differ only if nothing wrote it and nothing depends on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
import triton
import triton.language as tl
from handmade.records import INFO

from tracing import store
from tracing.analyze.compare.divergence_kinds import InputDiffers
from tracing.analyze.compare.first_divergence import Comparison
from tracing.analyze.compare.verdict import ComparisonVerdict
from tracing.model import Outcome
from tracing.perturb.perturbation import Perturbation
from tracing.record.launches.launch_recorder import LaunchRecorder
from tracing.record.operator_calls import OperatorFacts
from tracing.report.compare.comparison import equality_text, summary_text
from tracing.virtual_gpu import virtual_gpu


@triton.jit
def fill(y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, at.to(tl.float32), at < n)


def filled(y: torch.Tensor, n: int = 60) -> torch.Tensor:
    fill[(2,)](y, n, BLOCK=64)
    return y


def recorded(
    folder: Path, number: int, program: Callable[[int], object], operators: OperatorFacts = "writers"
) -> store.Run:
    """A run of a program, with memory of other contents for each number."""
    (folder / str(number)).mkdir()
    writer = store.create(folder / str(number), msgspec.structs.replace(INFO, operators=operators))
    with virtual_gpu(), Perturbation(number, True, 1, writer), LaunchRecorder(writer, operators=operators):
        program(number)
    writer.append(Outcome("passed", ""))
    return store.Run(writer.path)


def compared(
    folder: Path, program: Callable[[int], object], operators: OperatorFacts = "writers"
) -> tuple[int, str]:
    """The status and text of the comparison of two runs, in which fresh memory has other contents."""
    runs = [recorded(folder, number, program, operators) for number in (0, 1)]
    verdict = ComparisonVerdict.of(runs[0], runs[1], 64)
    assert list(verdict) == []
    lines = [*summary_text(verdict.comparison), *equality_text(verdict.comparison, 0, ())]
    return verdict.status, "\n".join([*verdict.dependents, *(line.plain for line in lines)])


@triton.jit
def add(x, y, z, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at) + tl.load(y + at))


def doubled(value: int) -> torch.Tensor:
    x, z = torch.full((64,), float(value)), torch.empty(64)
    add[(1,)](x, x, z, BLOCK=64)
    return z


def test_a_tensor_passed_twice_that_the_launch_reads_is_no_memory_without_an_access(tmp_path: Path) -> None:
    a, b = (recorded(tmp_path, number, doubled) for number in (0, 1))
    verdict = ComparisonVerdict.of(a, b, 64)

    assert {type(one) for one in verdict} == {InputDiffers}
    assert (verdict.comparison.notes.unwritten_memory, verdict.comparison.notes.notes) == ([], [])


def test_padding_that_nothing_depends_on_is_counted_and_equal(tmp_path: Path) -> None:
    status, text = compared(tmp_path, lambda _: filled(torch.empty(100))[:60].sum().item())

    assert status == 0
    assert "unwritten: at most 40 elements of y of launch #0 fill differ, which nothing wrote" in text
    # the digests of `sum`, after the launch, were not recorded
    assert "equal as far as both were recorded: 1 launch, every digest of what they read and wrote" in text


@pytest.mark.parametrize("use", [torch.sum, torch.max, torch.Tensor.mean])
def test_a_number_that_depends_on_memory_which_differs_is_a_difference(
    tmp_path: Path, use: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    status, text = compared(tmp_path, lambda _: use(filled(torch.empty(100))).item())

    assert status == 1
    assert "leaves 40 elements of y unwritten, first [60]" in text


def test_memory_that_an_operator_wrote_otherwise_is_not_called_equal(tmp_path: Path) -> None:
    def program(number: int) -> None:
        filled(torch.full((100,), float(number)))

    status, text = compared(tmp_path, program)

    assert status == 1  # by the operator's argument
    assert "not compared: at most 40 elements of y of launch #0 fill differ" in text


def test_memory_that_numpy_receives_is_not_called_equal(tmp_path: Path) -> None:
    status, text = compared(tmp_path, lambda _: filled(torch.empty(100)).numpy().sum())

    assert status == 2
    assert "whether a result depends on memory that nothing wrote" in text


def test_copied_padding_is_as_unwritten_as_what_was_copied(tmp_path: Path) -> None:
    status, text = compared(tmp_path, lambda _: filled(filled(torch.empty(100)).clone()))

    assert status == 0
    assert "likewise 1 argument more" in text


def test_runs_whose_memory_is_equal_have_every_digest(tmp_path: Path) -> None:
    status, text = compared(tmp_path, lambda _: filled(torch.zeros(100)))

    assert (status, text) == (0, "equal: 1 launch, every digest")


def test_runs_without_operators_are_not_called_equal(tmp_path: Path) -> None:
    status, _ = compared(tmp_path, lambda _: filled(torch.empty(100)), operators="none")

    assert status == 2


def test_no_more_parts_that_were_not_compared_are_listed_than_asked_for(tmp_path: Path) -> None:
    comparison = Comparison(*(recorded(tmp_path, number, doubled) for number in (0, 1)))
    comparison.notes.notes = ["one", "two", "three"]

    lines = [line.plain for line in summary_text(comparison, limit=2)]

    assert lines == ["not compared: one", "not compared: two", "not compared: 1 more: `--limit 3` shows them"]
