"""Runs in the formats of other tools: Perfetto, SARIF, tritonparse."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from handmade.records import arg, compiled, launch, new_run
from handmade.runs import digits, saved
from handmade.small_runs import small_run
from msgspec.structs import replace
from typer.testing import CliRunner

from tracing import store
from tracing.cli.app import app
from tracing.model import (
    Access,
    Failure,
    FrameCompile,
    GraphBreak,
    LaunchTime,
    Outcome,
    OutOfBounds,
    PassEnd,
    StageArtefact,
    Violation,
)
from tracing.report.exports.perfetto import perfetto_events
from tracing.report.exports.sarif import RULES, sarif
from tracing.report.exports.tritonparse import write_tritonparse

VIOLATION = Violation(
    "ShapeConstraint()", "mm", "aten.mm.default", "size 30", "a multiple of 8", python="case.py:7"
)
IR = "module {\n  tt.func public @k() {\n    tt.return\n  }\n}\n"


def exported(option: str, path: Path, *runs: store.Run) -> Any:
    done = CliRunner().invoke(app, ["export", *(str(one.path) for one in runs), option, str(path)])
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text())


def test_launches_follow_one_another_on_their_streams_and_steps_enclose_them(tmp_path: Path) -> None:
    launches = [launch(n, arg("x", "in", "x")) for n in range(3)]
    launches[1] = replace(launches[1], stream=7)
    times = [LaunchTime(n, 90.0, 10.0 + n) for n in range(3)]

    events = list(perfetto_events(saved(tmp_path, launches, times)))
    slices = [(one["ts"], one["dur"], one["tid"]) for one in events if one["ph"] == "X"]

    assert slices == [(0.0, 10.0, 1), (10.0, 11.0, 2), (21.0, 12.0, 1)]
    names = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert names == {1: "stream 0", 2: "stream 7"}


def test_passes_lie_within_the_slice_of_their_compilation(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    compiled(writer, "k", IR, ("ttir", "cse", IR), ("ttgir", "coalesce", IR))
    writer.close()

    whole = exported("--perfetto", tmp_path / "trace.json", store.Run(writer.path))["traceEvents"]
    slices = {one["name"]: one for one in whole if one["ph"] == "X"}

    assert [*slices] == ["k", "ttir", "cse", "ttgir", "coalesce"]
    assert (slices["coalesce"]["ts"], slices["coalesce"]["dur"]) == (1500.0, 1500.0)
    assert slices["k"]["dur"] == 3000.0


def dropped(events: list[dict[str, Any]]) -> list[str]:
    """The slices that Perfetto drops: those that end after the slice of their thread in which they began.

    Perfetto's own parser, trace_processor, is a program that its package on PyPI downloads.
    """
    drops, open_ends = [], defaultdict(list)
    for one in sorted((one for one in events if one["ph"] == "X"), key=lambda one: one["ts"]):
        start, ends = round(one["ts"] * 1000), open_ends[one["pid"], one["tid"]]
        end = start + round(one["dur"] * 1000)
        while ends and ends[-1] <= start:
            ends.pop()
        drops += [one["name"]] if ends and end > ends[-1] else []
        ends.append(end)
    return drops


def test_perfetto_drops_no_slice_whatever_the_durations_are(tmp_path: Path) -> None:
    chance = random.Random(0)
    launches = [launch(n, arg("x", "in", "x")) for n in range(50)]
    launches = [replace(one, step=(one.index // 7, one.index % 7), stream=one.index % 3) for one in launches]
    times = [LaunchTime(n, 9.0, chance.random() * 10 ** chance.randrange(6)) for n in range(50)]
    writer = store.reopened(saved(tmp_path, launches, times).path)
    passes = [("ttir", f"pass{n}", IR) for n in range(20)] + [("ttgir", f"pass{n}", IR) for n in range(20)]
    compiled(writer, "k", IR, *passes)
    for number in range(40):
        writer.append(PassEnd(0, number, chance.random()))
    for stage in ("ttir", "ttgir"):
        writer.append(StageArtefact(0, stage, writer.blob(IR), chance.random()))
    writer.close()

    events = exported("--perfetto", tmp_path / "trace.json", store.Run(writer.path))["traceEvents"]

    assert dropped(events) == []
    assert {type(one[key]) for one in events for key in ("pid", "tid")} == {int}
    assert all(one["ts"] >= 0 and one["dur"] >= 0 for one in events if one["ph"] == "X")
    assert {one["name"] for one in events if one["ph"] == "M"} == {"process_name", "thread_name"}


def test_a_violation_a_graph_break_and_a_failure_stand_at_their_lines(tmp_path: Path) -> None:
    frame = FrameCompile("0/0", "forward", "case.py:3", breaks=(GraphBreak("print", "case.py:9"),))
    run = saved(tmp_path, [], [VIOLATION, frame, Outcome("differs", "output differs")], ended=False)

    results = sarif([run])["runs"][0]["results"]

    assert [one["ruleId"] for one in results] == ["constraint", "graph-break", "difference"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///case.py"
    assert [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results[:2]] == [7, 9]
    assert "locations" not in results[2]


def test_the_divergence_of_two_runs_is_a_result_of_the_second(tmp_path: Path) -> None:
    a, b = (saved(tmp_path / left, [launch(0, arg("y", "out", "-", left), name="make")]) for left in "ab")

    logs = exported("--sarif", tmp_path / "log.sarif", a, b)["runs"]

    (result,) = logs[1]["results"]
    assert result["ruleId"] == "divergence" and logs[0]["results"] == []
    assert "launch #0 make: output y" in result["message"]["text"]


def test_accesses_outside_of_an_argument_are_results_at_their_line(log: Any) -> None:
    (result,) = [one for one in log["runs"][0]["results"] if one["ruleId"] == "memory"]

    assert result["message"]["text"].startswith("#0 triton_poi_fused_mul_0: 1 store outside of y, ")
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 5


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """Of two runs, with a result of each rule."""
    frame = FrameCompile("0/0", "forward", "case.py:3", breaks=(GraphBreak("print", "case.py:9"),))
    failure = Failure("frontend", "k", "NameError", "helper.py:4", file="/a folder/helper.py")
    outside = OutOfBounds(0, "y", "store", 100, (1, 0, 0), 400, 404, 1, inside=False, where="case.py:5")
    known = [VIOLATION, frame, failure, outside, Outcome("differs", "output differs")]
    accesses = {left: Access(0, {}, {0: digits(left)}, uninitialised={0: (3, 2)}) for left in "ab"}
    runs = [
        saved(tmp_path / left, [launch(0, arg("y", "out", "-", left))], [*known, accesses[left]], ended=False)
        for left in "ab"
    ]
    return exported("--sarif", tmp_path / "log.sarif", *runs)


def validate(log: Any) -> None:
    """Raises ValueError if the schema of SARIF 2.1.0 refuses the log."""
    model = pytest.importorskip("pydantic_sarif.model", reason="pydantic-sarif is not installed: make test")
    schema = model.StaticAnalysisResultsFormatSarifVersion210JsonSchema
    schema.model_validate_json(json.dumps(log), strict=True)


def test_the_log_is_valid_by_the_schema_of_sarif(log: Any) -> None:
    validate(log)

    assert {one["ruleId"] for one in log["runs"][1]["results"]} == {*RULES}


@pytest.mark.parametrize(("name", "wrong"), [("level", "fatal"), ("message", "a text"), ("line", 7)])
def test_the_schema_of_sarif_refuses_a_wrong_log(log: Any, name: str, wrong: Any) -> None:
    log["runs"][1]["results"][0][name] = wrong

    with pytest.raises(ValueError, match=name):
        validate(log)


def test_tritonparse_accepts_the_events_of_a_run(tmp_path: Path) -> None:
    pytest.importorskip("tritonparse", reason="tritonparse is not installed: make test")
    from tritonparse.parse.utils import unified_parse
    from tritonparse.validation.json_validator import validate_trace_file

    run, trace = store.Run(small_run(tmp_path / "run")), tmp_path / "dedicated_log_triton_trace_run.ndjson"
    write_tritonparse(trace, run)
    checked = validate_trace_file(str(trace))
    unified_parse(str(trace), out=str(tmp_path / "parsed"), overwrite=True, skip_logger=True)
    parsed = [
        json.loads(line)
        for path in (tmp_path / "parsed").rglob("*.ndjson*")
        for line in (
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        ).splitlines()
    ]

    assert checked["errors"] == []
    assert checked["event_type_counts"] == {"compilation": 1, "launch": 4}
    launches = [one for one in parsed if one["event_type"] == "launch"]
    assert [one["extracted_args"]["y"]["digest_after"] for one in launches] == ["b" * 32] * 4


def test_an_export_needs_a_format(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", str(small_run(tmp_path))])

    assert done.exit_code != 0
