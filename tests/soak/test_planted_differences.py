"""All planted differences: their effects, the answers of `tracing compare --json`, and docs/planted.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import recorded, tracing
from faults.answers import Verdict, answer
from faults.truths import Difference, Recipe, differences
from planted_differences import PAGE, Row, examined, left, page, table
from recorded.planted_cases import Recordings, case_of
from typer.testing import CliRunner

from tracing.cli.app import app
from tracing.report.html.chunks import decoded

PLANTED = differences()
TYPED = {"fusions-first", "hosts-address", "operators-other", "orders-disjoint", "outcomes-kind", "sets-sum"}
# the host changes what an operator wrote before: without `--operators digests` both remain possible
UNDECIDED = {"slices-later", "slices-both"}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def row_of(recordings: Recordings) -> Callable[[Difference], Row]:
    rows: dict[str, Row] = {}

    def of(difference: Difference) -> Row:
        if difference.id not in rows:
            rows[difference.id] = examined(difference, recordings)
        return rows[difference.id]

    return of


@pytest.mark.parametrize("difference", PLANTED, ids=lambda difference: difference.id)
def test_a_planted_difference_changes_the_results_of_the_case(difference: Difference, tmp_path: Path) -> None:
    a, a2, b = left(difference, tmp_path)

    truth = difference.truth
    assert a == a2
    assert truth.in_part or (a != b) == (truth.differs and not truth.hidden)


@pytest.mark.parametrize("difference", PLANTED, ids=lambda difference: difference.id)
def test_compare_accuses_the_planted_difference(
    difference: Difference, row_of: Callable[[Difference], Row]
) -> None:
    row = row_of(difference)

    print(row)
    assert row.equal.good
    assert (row.verdict is Verdict.UNCERTAIN) if difference.id in UNDECIDED else row.verdict.good


@pytest.mark.parametrize("difference", PLANTED, ids=lambda difference: difference.id)
def test_the_first_findings_of_a_report_name_what_compare_accuses(
    difference: Difference, recordings: Recordings, row_of: Callable[[Difference], Row], tmp_path: Path
) -> None:
    answer, path = row_of(difference).answer, tmp_path / "report.html"
    runs = [str(recordings.of(difference, recipe)) for recipe in (difference.a, difference.b)]
    done = CliRunner().invoke(app, ["report", *runs, "--no-sass", "-o", str(path)])

    assert done.exit_code == answer.status, done.output
    shown = findings(path)
    texts = ["\n".join([one["title"], *one["lines"]]) for one in shown]
    started = [one["name"] for one in answer.said.get("start", ())]  # differs before any launch
    accused = [one["accused"].get("name", "") for one in answer.divergences[:1]]
    for number, name in enumerate(dict.fromkeys([*started, *accused])):
        assert shown[number]["tone"] == "bad"
        assert name in texts[number], texts


@pytest.mark.parametrize("difference", [one for one in PLANTED if one.id in TYPED], ids=lambda one: one.id)
def test_the_commands_in_processes_of_their_own_say_the_same(
    difference: Difference, row_of: Callable[[Difference], Row], tmp_path: Path
) -> None:
    a, b = (typed(difference, recipe, tmp_path) for recipe in (difference.a, difference.b))
    done = tracing("compare", a, b, "--anyway", "--json", runs=tmp_path)

    assert answer(done.returncode, done.stdout, done.stderr).summary() == row_of(difference).answer.summary()


def findings(report: Path) -> list[dict[str, Any]]:
    """What the first screen of a report shows."""
    match = re.search('id="index">([^<]*)<', report.read_text())
    assert match is not None
    return list(decoded(match[1])["findings"])


def typed(difference: Difference, recipe: Recipe, runs: Path) -> str:
    """The run of `tracing run` on a case; a failing one is a run as well."""
    with case_of(difference, recipe, runs) as case:
        name = f"{case.path}:{recipe.options}" if recipe.options else str(case.path)
        if not difference.truth.failing:
            return recorded(name, runs, "--no-passes", *recipe.flags, passed=False)
        return tracing("run", name, "--no-passes", *recipe.flags, runs=runs).stdout.splitlines()[-1]


@pytest.mark.timeout(3600)  # it records what no test before it did
def test_the_page_says_what_compare_says(row_of: Callable[[Difference], Row]) -> None:
    rows = [row_of(difference) for difference in PLANTED]

    print(table(rows))
    assert {row.difference.id for row in rows if not row.good} == UNDECIDED
    assert PAGE.read_text() == page(rows), "write it anew: python tests/planted_differences.py"
