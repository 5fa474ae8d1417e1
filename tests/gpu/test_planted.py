"""On a GPU: every kind of planted fault is reported with its kernel, argument and producer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import DATA, tracing
from faults.reported import SAID, compared, faulty

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return faulty("none", tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("fault", SAID)
def test_a_planted_fault_is_named(fault: str, sound: Path, tmp_path: Path) -> None:
    text = compared(sound, faulty(fault, tmp_path))

    print(text)
    assert [said for said in SAID[fault] if said not in text] == []


def test_a_race_of_float_atomics_is_reported_as_a_nondeterministic_kernel(tmp_path: Path) -> None:
    done = tracing("repeat", str(DATA / "racing.py"), "--times", "4", runs=tmp_path)

    print(done.stdout)
    assert done.returncode == 1, done.stderr
    assert " racing_sum\n" in done.stdout
    assert "output    out_ptr (argument 1)" in done.stdout
    assert "the kernel's TTIR adds floats atomically" in done.stdout


def test_another_winner_whose_results_are_equal_is_no_difference_where_it_was_asked_for(
    tmp_path: Path,
) -> None:
    done = tracing("repeat", str(DATA / "faults.py"), "--times", "3", "--perturb", runs=tmp_path)

    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kernel in another configuration, which --perturb chose" in done.stdout


def test_an_unmasked_load_of_uninitialised_memory_is_named_with_who_left_it_unwritten(tmp_path: Path) -> None:
    done = tracing("repeat", str(DATA / "poisoned.py"), "--times", "2", "--perturb", runs=tmp_path)

    print(done.stdout)
    assert done.returncode == 1, done.stderr
    assert " total\n" in done.stdout
    assert "input     in_ptr (argument 0)" in done.stdout
    assert " fill wrote only part of this tensor, as out_ptr;" in done.stdout
    assert "the rest held other bits before, and is read here" in done.stdout


def test_a_stream_that_does_not_wait_for_another_is_named_with_what_it_should_have_waited_for(
    tmp_path: Path,
) -> None:
    done = tracing("repeat", str(DATA / "unordered.py"), "--times", "3", "--perturb", runs=tmp_path)

    print(done.stdout)
    assert done.returncode == 1, done.stderr
    assert " consume\n" in done.stdout
    assert "input     in_ptr (argument 0)" in done.stdout
    assert " produce wrote equal bits on another stream:" in done.stdout
    assert "does this launch wait for that stream?" in done.stdout
    assert "late start of a stream  " in done.stdout


def test_streams_that_wait_for_one_another_differ_in_no_run_however_late_they_start(tmp_path: Path) -> None:
    case = f"{DATA / 'unordered.py'}:waits=true"
    done = tracing("repeat", case, "--times", "3", "--perturb", runs=tmp_path)

    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
