"""`tracing check`: violations, coverage, and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import DATA, tracing
from documents.json_keys import require_documented
from handmade.records import new_run
from typer.testing import CliRunner

from tracing import store
from tracing.cli.app import app
from tracing.model import CheckedGraph, GraphCoverage, GraphTime, KeptAnswer, Violation

CASE = str(DATA / "checked.py")


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """The folder of runs, and the answer for a case whose middle is in float64."""
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("check", CASE, "--dtype", "float32", "--json", runs=runs)
    assert done.returncode == 1, done.stderr
    require_documented(done.stdout, "## `tracing check`")
    return runs, json.loads(done.stdout)


def printed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.stdout


def test_violations_name_the_line_and_coverage_counts_what_reads_them(
    checked: tuple[Path, dict[str, object]],
) -> None:
    forward, backward = checked[1]["graphs"]  # type: ignore[misc]

    assert (forward["kind"], backward["kind"]) == ("forward", "backward")
    violations = forward["violations"]
    assert [one["operator"] for one in violations] == ["aten._to_copy.default", "aten.mul.Tensor"]
    assert {one["python"] for one in violations} == {"checked.py:15"}
    # the cast back to float32 reads float64
    assert forward["unsupported"] == 3 and forward["unsupported_operators"]["aten._to_copy.default"] == 2
    assert forward["partitions"] == 2


def test_a_run_is_not_checked_against_other_constraints(checked: tuple[Path, dict[str, object]]) -> None:
    done = tracing("check", str(checked[1]["run"]), "--alignment", "8", runs=checked[0])

    assert done.returncode == 2
    assert "was checked against its own constraints, and not against those that are given" in done.stderr


def test_the_share_of_the_run_time_is_that_of_supported_operators(
    checked: tuple[Path, dict[str, object]],
) -> None:
    graphs = checked[1]["graphs"]
    supported = sum(one["supported_s"] for one in graphs)  # type: ignore[attr-defined]
    total = sum(one["total_s"] for one in graphs)  # type: ignore[attr-defined]

    assert 0 < supported < total
    assert checked[1]["time_share"] == pytest.approx(supported / total)


def test_a_checked_run_is_printed_without_executing_the_case(checked: tuple[Path, dict[str, object]]) -> None:
    runs, answer = checked

    status, text = printed("check", str(answer["run"]), "--json", "--runs", str(runs))

    assert status == 1 and json.loads(text) == answer
    kept = list(store.Run(Path(str(answer["run"]))).records(KeptAnswer))
    assert [(one.name, one.status) for one in kept] == [("check", 1)] * 2  # of the case, and of the run
    assert "operators supported" in kept[0].lines[0]


def recorded(folder: Path, *violations: Violation, time: float = 0.003) -> str:
    """The path of a run with one checked graph, whose supported operators take `time` of 4 ms."""
    writer = new_run(folder)
    blob = writer.blob("")
    writer.append(
        CheckedGraph(0, "mock_backend", "forward", "0/0", ("ShapeConstraint(alignment=8)",), blob, blob)
    )
    writer.extend(violations)
    writer.append(GraphCoverage(0, 3, 1, 0, 2, {"aten.mm.default": 1}))
    writer.append(GraphTime(0, time, 0.004))
    writer.close()
    return str(writer.path)


VIOLATION = Violation("c", "mm", "aten.mm.default", "size 6", "a multiple of 8", True, "m.py:3", "x @ w", 0)


def test_equal_violations_of_one_line_are_one_line(tmp_path: Path) -> None:
    other = Violation("c", "mm_1", "aten.mm.default", "size 6", "a multiple of 8", True, "m.py:3", "x @ w", 0)
    status, text = printed("check", recorded(tmp_path, VIOLATION, other))

    assert status == 1
    assert text.splitlines()[:4] == [
        "graph 0/0 forward: 2 partitions, 3 of 4 operators supported, which take 75% of 4 ms",
        "  ✗ mm (aten.mm.default) × 2: size 6; needed: a multiple of 8",
        "      m.py:3: x @ w",
        "    unsupported  aten.mm.default × 1",
    ]
    assert text.splitlines()[4] == (
        "2 violations; 3 of 4 operators supported in 2 partitions (connected supported operators); "
        "supported operators take 75% of the measured time"
    )


def test_a_share_is_100_percent_only_if_all_operators_are_supported(tmp_path: Path) -> None:
    almost, whole = (recorded(tmp_path / name, time=time) for name, time in (("a", 0.003999), ("b", 0.004)))

    assert "take more than 99% of the measured time" in printed("check", almost)[1]
    assert "take 100% of the measured time" in printed("check", whole)[1]


def test_without_a_violation_the_status_is_0_and_with_an_undecided_one_2(tmp_path: Path) -> None:
    undecided = Violation("c", "mm", "aten.mm.default", "size s0", "a multiple of 8", False, "", "", 0)

    assert printed("check", recorded(tmp_path / "a"))[0] == 0
    assert printed("check", recorded(tmp_path / "b", undecided))[0] == 2
    assert printed("check", recorded(tmp_path / "c", undecided, VIOLATION))[0] == 1


def refused(*words: str) -> str:
    """The error of a command that has no answer."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    return done.output


def test_a_run_without_checked_graphs_is_no_answer(tmp_path: Path) -> None:
    assert "has no checked graph" in refused("check", str(new_run(tmp_path).path))


def test_a_misspelt_operator_is_refused_with_near_names(tmp_path: Path) -> None:
    error = refused("check", CASE, "--unsupported", "linalg.lux", "--runs", str(tmp_path))

    assert "torch has no operator 'linalg.lux'; nearest: linalg.lu, " in error
    assert store.recorded(tmp_path) == []


def test_a_case_that_fails_is_no_answer(tmp_path: Path) -> None:
    case = tmp_path / "fails.py"
    case.write_text(
        "import torch\nfrom tracing import Workload\n\n\n"
        "def build(device):\n    return Workload(lambda x: x @ torch.ones(3), (torch.ones(2),))\n"
    )

    assert "the case failed: " in refused("check", str(case), "--runs", str(tmp_path))


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (
            ("--alignment", "1", "--dimension", "7"),
            2,
            "no tensor has dimension 7; to cover it: name",
        ),
        (("--alignment", "1", "--dimension", "-1"), 0, ""),
        (("--unsupported", "triton.TYPO"), 2, "no graph launches triton.TYPO"),
    ],
)
def test_a_constraint_that_names_what_no_graph_has_is_no_success(
    options: tuple[str, ...], status: int, text: str, tmp_path: Path
) -> None:
    done = tracing("check", CASE, *options, runs=tmp_path)

    assert done.returncode == status, done.stderr
    assert text in done.stdout and ("not covered" in done.stdout) == bool(text)
    assert printed("check", str(next(tmp_path.glob("checked-*"))))[0] == status
