"""`tracing compare` as it is typed: what it prints, and its exit status."""

from __future__ import annotations

from pathlib import Path

import msgspec
from commands import tracing
from planted_runs import saved
from records import arg, launch

from tracing import store
from tracing.model import Digest, Result


def run(folder: Path, *results: str, case: str = "case", ended: bool = True) -> store.Run:
    """A launch for each result: what it left."""
    launches = [
        launch(index, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", left), name=f"k{index}")
        for index, left in enumerate(results)
    ]
    return saved(folder, launches, case=case, ended=ended)


def compared(a: store.Run, b: store.Run, *options: str) -> tuple[int, str]:
    done = tracing("compare", str(a.path), str(b.path), *options, runs=a.path.parent)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_runs_of_two_cases_are_compared_only_if_asked(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y", case="other")

    status, text = compared(a, b)
    assert status == 2 and "the runs are of different cases: case and other" in text

    status, text = compared(a, b, "--anyway")
    assert status == 0 and "equal: 1 launch" in text


def test_the_first_divergence_ends_with_the_commands_that_go_on_from_there(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "z")

    status, text = compared(a, b)

    assert status == 1
    assert f"next      tracing repro {a.path} --launch 0" in text


def test_no_more_divergences_are_shown_than_asked_for(tmp_path: Path) -> None:
    status, text = compared(run(tmp_path / "a", *"yyy"), run(tmp_path / "b", *"zzz"), "--limit", "2")

    assert status == 1
    assert text.count("✗") == 2
    assert "1 divergence more: `--limit 3` shows them" in text


def test_a_run_that_was_interrupted_gives_no_answer_where_it_is_equal_so_far(tmp_path: Path) -> None:
    status, text = compared(run(tmp_path / "a", *"yy"), run(tmp_path / "b", "y", ended=False))

    assert status == 2
    assert "equal as far as they go: 1 launch" in text
    assert "was interrupted" in text


def test_results_that_differ_while_every_launch_is_equal_come_from_outside_of_the_kernels(
    tmp_path: Path,
) -> None:
    a, b = run(tmp_path / "a", "y"), run(tmp_path / "b", "y")
    for one, bits in ((a, "1" * 32), (b, "2" * 32)):
        (one.path / "results-h-0-1.ndjson").write_bytes(
            msgspec.json.encode(Result("grad of input 0", Digest(bits))) + b"\n"
        )

    status, text = compared(a, b)

    assert status == 1
    assert "grad of input 0 differs" in text
    assert "the results differ all the same" in text
