"""What speaks for a cause is said where it is there, and not where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from records import arg, launch, new_run

from tracing.analyze.cause import evidence
from tracing.analyze.divergence import Divergence, Producer
from tracing.store import Run

ADD = "  %3 = tt.atomic_rmw fadd, acq_rel, gpu, %o, %2, %true : (!tt.ptr<f32>, f32, i1) -> f32\n"
PLAIN = "  %2 = tt.load %1 : tensor<64x!tt.ptr<f32>>\n  tt.store %4, %2 : tensor<64x!tt.ptr<f32>>\n"
MASKED = "  %2 = tt.load %1, %mask : tensor<64x!tt.ptr<f32>>\n"


def told(folder: Path, ir: str, **fields: object) -> str:
    writer = new_run(folder)
    kernel = msgspec.structs.replace(launch(0).kernel, stages={"ttir": writer.blob(ir)})
    one = msgspec.structs.replace(launch(0), kernel=kernel)
    found = Divergence("output", 0, 0, "k", "x", "y", one, one)
    return "\n".join(evidence(Run(writer.path), replace(found, **fields)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ir", "words"), [(ADD, "adds floats atomically (1 tt.atomic_rmw fadd)"), (PLAIN, "no atomic operation")]
)
def test_a_kernel_that_gives_two_results_is_searched_for_atomics(ir: str, words: str, tmp_path: Path) -> None:
    assert words in told(tmp_path, ir)


def test_a_reader_of_unwritten_memory_is_searched_for_loads_without_a_mask(tmp_path: Path) -> None:
    producer = Producer(0, "fill", "out_ptr", ("out_ptr",), unwritten=True)

    assert "in 1 of 2 places" in told(tmp_path, PLAIN + MASKED, kind="input", producer=producer)


def test_a_random_generator_is_named(tmp_path: Path) -> None:
    assert "is a random generator" in told(tmp_path, "", kind="input", operator="aten::rand")


@pytest.mark.parametrize(
    ("a", "tuned"),
    [
        ("XBLOCK=256, num_warps=4", True),
        ("grid=(1, 2, 3), num_stages=3", True),
        ("kernel=k", False),
        ("XBLOCK=256, DTYPE_sum=4", False),
        ("grid=(1, 2, 3)", False),
    ],
)
def test_only_what_autotuning_chooses_is_called_another_winner(a: str, tuned: bool, tmp_path: Path) -> None:
    assert ("another winner" in told(tmp_path, "", kind="launch", a=a, b=a)) is tuned


def test_another_winner_is_said_to_add_otherwise_where_it_adds_at_all(tmp_path: Path) -> None:
    winner = {"kind": "launch", "a": "BLOCK=16", "b": "BLOCK=64", "outputs": ("out_ptr",)}

    assert "combines elements (1 tt.atomic_rmw)" in told(tmp_path, ADD, **winner)
    assert "another order of additions is not the reason" in told(tmp_path, PLAIN, **winner)


def test_an_argument_that_differs_is_the_programs_doing(tmp_path: Path) -> None:
    one = launch(0, arg("xnumel", "none", "x"))

    text = told(tmp_path, "", kind="launch", a="xnumel=4", b="xnumel=8", launch=one)

    assert text == "the program gives it something else: xnumel"
