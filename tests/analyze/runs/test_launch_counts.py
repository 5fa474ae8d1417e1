"""Counting launches without joining them, and pages of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tracing
from handmade.jobs import job
from handmade.records import arg, launch, new_run

from tracing import store
from tracing.analyze.runs.launch_counts import launch_counts, launches_between
from tracing.model import Argument, Kernel, LaunchLine, Outcome, Signature
from tracing.report.run import PAGE


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two and a half pages."""
    writer = new_run(tmp_path_factory.mktemp("long"))
    for number, name in enumerate(("add", "mul")):
        writer.append(Kernel(number, name, f"{number:064x}", "cuda:90", 4, 3, 1, {}, {}))
        writer.append(Signature(number, number, (8, 1, 1), "forward", "cpu", (Argument("n", value=3),)))
    writer.extend([LaunchLine(i, int(i % 5 == 0), 0, ()) for i in range(PAGE * 5 // 2)])
    writer.append(Outcome("passed", ""))
    writer.close()
    return writer.path


def test_launches_are_counted_by_kernel_and_process(long: Path) -> None:
    (counts,) = launch_counts(store.Run(long)).values()

    assert counts == {"add": PAGE * 2, "mul": PAGE // 2}


def test_the_launches_between_two_numbers_go_over_processes(tmp_path: Path) -> None:
    ranks = [[launch(n, arg("x", "in", str(n)), name=f"k{n}") for n in range(3)] for _ in range(2)]
    run = job(tmp_path, *ranks)

    names = [one.kernel_name for one in launches_between(run, launch_counts(run), 2, 5)]

    assert names == ["k2", "k0", "k1"]
    assert list(launches_between(run, launch_counts(run), 6, 9)) == []


@pytest.mark.parametrize(
    ("options", "first", "last", "count"),
    [
        ((), 0, PAGE - 1, PAGE),
        (("--page", "3"), 2 * PAGE, PAGE * 5 // 2 - 1, PAGE // 2),
        (("--all",), 0, PAGE * 5 // 2 - 1, PAGE * 5 // 2),
    ],
)
def test_a_long_run_is_shown_page_by_page(
    long: Path, options: tuple[str, ...], first: int, last: int, count: int
) -> None:
    shown = tracing("show", str(long), *options, runs=long)

    launches = [line for line in shown.stdout.splitlines() if line.startswith("#")]
    assert shown.returncode == 0, shown.stderr
    assert launches[0].startswith(f"#{first} [Triton]") and launches[-1].startswith(f"#{last} [Triton]")
    assert len(launches) == count
    assert ("page 1 of 3" in shown.stdout) == (options == ())
    assert "2500 launches of 2 kernels" in shown.stdout


def test_a_page_that_is_not_there_is_refused(long: Path) -> None:
    shown = tracing("show", str(long), "--page", "4", runs=long)

    assert shown.returncode == 2
    assert "has no page 4: it has 3 pages\n" in shown.stderr
