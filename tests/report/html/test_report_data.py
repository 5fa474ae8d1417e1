"""What a report holds of runs: findings, launches, kernels with linked lines, passes, producers."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from commands import ROOT
from handmade.records import arg, compiled, kernel, launch, new_run
from handmade.runs import saved
from handmade.small_runs import small_run
from msgspec.structs import replace
from typer.testing import CliRunner

from tracing import store
from tracing.cli.app import app
from tracing.model import (
    AnswerHeat,
    AnswerTable,
    Argument,
    CheckedGraph,
    KeptAnswer,
    Kernel,
    LaunchLine,
    Outcome,
    Signature,
    StageArtefact,
    Violation,
)
from tracing.report.html.chunks import decoded, encoded
from tracing.report.html.launch_data import DIVERGES, NAN

PAGE = ROOT / "tracing/report/html/page"
IR = """#loc1 = loc("{file}":2:5)
module {{
  tt.func public @k() {{
    %0 = tt.get_program_id x : i32 loc(#loc1)
    tt.return loc(#loc1)
  }}
}}
"""
PTX = '.file 1 "{file}"\n.loc 1 2 0\n  mov.u32 %r1, %ctaid.x;\n.loc 1 7 0\n  ret;\n'


class Report:
    """A report that a command wrote, decoded as the page decodes it."""

    def __init__(self, *runs: store.Run, status: int = 0) -> None:
        path = runs[0].path.parent / "report.html"
        words = ["report", *(str(one.path) for one in runs), "-o", str(path), "--no-sass", "--json"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == status, done.output
        self.printed = json.loads(done.stdout)
        self.text = path.read_text()
        self.index = decoded(self._part("index"))

    def chunk(self, number: int) -> Any:
        return decoded(self._part(f"chunk-{number}"))

    def columns(self, run: int = 0) -> Any:
        return self.chunk(self.index["runs"][run]["launches"]["columns"])

    def _part(self, name: str) -> str:
        match = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', self.text)
        assert match is not None, name
        return match[1]


def written(folder: Path, name: str = "k", source: str = "def k():\n    x = tl.load()\n") -> store.Run:
    """A run of one kernel, launched once, with source, TTIR, PTX and two passes."""
    writer = new_run(folder)
    ir = IR.format(file="/k.py")
    other = ir.replace("    tt.return", "    gpu.barrier\n    tt.return")
    compiled(writer, name, ir, ("ttir", "cse", ir), ("ttir", "fence", other))
    for stage, text in {"ttir": ir, "ptx": PTX.format(file="/k.py")}.items():
        writer.append(StageArtefact(0, stage, writer.blob(text), 1.5))
    facts = Kernel(
        0, name, f"00hash of {name}", "cuda:90", 4, 3, 1, {"N": "4"}, {}, writer.blob(source), "/k.py:1"
    )
    writer.append(facts)
    writer.append(Signature(0, 0, (1, 1, 1), "forward", "cpu", (Argument("n", value=float("nan")),)))
    writer.append(LaunchLine(0, 0, 0, ()))
    writer.append(Outcome("passed", ""))
    writer.close()
    return store.Run(writer.path)


def test_the_first_finding_of_two_runs_is_the_launch_whose_output_differs(tmp_path: Path) -> None:
    def run(left: str) -> store.Run:
        made = launch(0, arg("x", "in", "x"), arg("y", "out", "-", "y"), name="make")
        used = launch(1, arg("y", "in", "y"), arg("z", "out", "-", left), name="use")
        return saved(tmp_path / left, [made, used])

    report = Report(run("a"), run("b"), status=1)

    first = report.index["findings"][0]
    assert first["title"].startswith("first divergence: launch #1 use")
    assert (first["launch"], first["tone"]) == ([1, 0, 1], "bad")
    assert first["lines"][0] == "accused: kernel use z"
    assert any("not deterministic" in line for line in first["lines"])
    assert report.columns(0)["flags"] == report.columns(1)["flags"] == [0, DIVERGES]
    assert report.printed["findings"][0]["title"] == first["title"]


def test_a_divergence_has_the_launches_that_its_inputs_come_from(tmp_path: Path) -> None:
    def run(left: str) -> store.Run:
        made = launch(0, arg("x", "in", "x"), arg("y", "out", "-", "y"), name="make")
        used = launch(1, arg("y", "in", "y"), arg("z", "out", "-", left), name="use")
        return saved(tmp_path / left, [made, used])

    graph = Report(run("a"), run("b"), status=1).index["comparison"]["divergences"][0]["producers"]

    assert [one["name"] for one in graph["nodes"]] == ["use", "make"]
    assert graph["edges"] == [{"writer": 1, "reader": 0, "argument": "y"}]


def test_a_nan_is_marked_at_its_launch_and_is_a_finding(tmp_path: Path) -> None:
    bad = arg("y", "out", "-", "y")
    assert bad.after is not None
    bad = replace(bad, after=replace(bad.after, nan=3))

    report = Report(saved(tmp_path, [launch(0, arg("x", "in", "x"), bad)]))

    assert report.columns()["flags"] == [NAN]
    (finding,) = [one for one in report.index["findings"] if "NaN" in one["title"]]
    assert finding["launch"] == [0, 0, 0]
    assert finding["lines"][0] == "y: 3 NaN, 0 inf"


def test_a_run_without_a_finding_names_the_commands_that_search_further(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0, arg("x", "in", "x"))], [Outcome("passed", "")])

    (finding,) = Report(run).index["findings"]

    assert finding["title"] == "nothing was found"
    assert finding["next"][0] == f"tracing judge {run.path}"


def test_a_run_whose_files_are_missing_is_damaged(tmp_path: Path) -> None:
    run = written(tmp_path)
    shutil.rmtree(run.path / "blobs")

    report = Report(run, status=2)

    first = report.index["findings"][0]
    assert (first["tone"], first["kernel"]) == ("bad", [0, 0])
    assert first["title"] == "the run is damaged: the code of 1 of 1 kernels cannot be read"
    assert "blobs" in first["lines"][0]


def test_a_python_line_is_linked_with_the_lines_that_come_from_it(tmp_path: Path) -> None:
    report = Report(written(tmp_path))
    content = report.chunk(report.index["runs"][0]["kernels"][0]["chunk"])
    stages = {one["stage"]: one for one in content["stages"]}

    def sets(stage: str) -> dict[int, int]:
        links = stages[stage]["links"]
        return dict(zip(links[::2], links[1::2], strict=True))

    assert content["frames"][content["stacks"][content["sets"][sets("python")[2]][0]][0]] == ["/k.py", 2]
    assert sets("ttir")[4] == sets("ptx")[3] == sets("python")[2]
    assert sets("ptx")[5] not in sets("python").values()
    assert stages["ptx"]["text"] == PTX.format(file="/k.py")


def test_a_pass_has_its_operation_counts_and_its_diff(tmp_path: Path) -> None:
    report = Report(written(tmp_path))
    row = report.index["runs"][0]["kernels"][0]
    cse, fence = report.chunk(row["chunk"])["passes"]

    assert (row["passes"], row["changed"]) == (2, 1)
    assert (cse["changed"], cse["diff"]) == (False, "")
    assert fence["changes"] == [["gpu.barrier", 0, 1]]
    assert "\n+    gpu.barrier\n" in fence["diff"]
    assert any("--pass fence" in command for command in row["next"])


def test_a_pass_that_did_not_end_is_the_first_finding_with_the_commands_that_follow(tmp_path: Path) -> None:
    first = Report(store.Run(small_run(tmp_path))).index["findings"][0]

    assert (first["title"], first["tone"]) == ("pass second of k did not end", "bad")
    assert "--crash" in first["next"][0]


def test_kernels_of_two_runs_have_the_pass_after_which_they_differ(tmp_path: Path) -> None:
    runs = []
    for number, last in enumerate(("tt.return", "gpu.barrier\n    tt.return")):
        writer = new_run(tmp_path / str(number))
        ir = IR.format(file="/k.py")
        compiled(writer, "k", ir, ("ttir", "cse", ir.replace("tt.return", last)))
        writer.append(Outcome("passed", ""))
        writer.close()
        runs.append(store.Run(writer.path))

    report = Report(*runs, status=1)
    (pair,) = report.index["comparison"]["kernels"]
    (row,) = report.chunk(pair["chunk"])["pairs"]

    part, finding = report.index["findings"]

    assert part["lines"] == ["nothing was compared: no launch and no result"]
    assert finding["title"] == "the compiler's IR of k differs" and finding["kernel"] == [1, 0]
    assert not pair["equal"]
    assert (row["state"], row["name"]) == ("diverges", "cse")
    assert "+    gpu.barrier" in row["diff"]


def test_nothing_of_a_run_is_markup_or_acts(tmp_path: Path) -> None:
    name, source = (
        "<img src=x onerror=alert(1)>",
        "def k():\n    '''</script><script>alert(2)</script>\u202e\x1b[31m'''\n",
    )

    report = Report(written(tmp_path, name, source))

    assert "<img" not in report.text
    assert "alert(" not in report.text
    numbers = {int(one) for one in re.findall(r'id="chunk-(\d+)"', report.text)}
    assert report.text.count("</script>") == len(numbers) + 2  # the index and the program
    content = report.chunk(report.index["runs"][0]["kernels"][0]["chunk"])
    assert content["stages"][0]["text"].endswith("</script>\\u202e\\u001b[31m'''\n")
    assert report.index["runs"][0]["kernels"][0]["name"] == name


def test_the_policy_of_the_page_allows_its_own_program_only(tmp_path: Path) -> None:
    text = Report(written(tmp_path)).text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)

    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy


def test_a_chunk_keeps_numbers_that_json_lacks() -> None:
    assert decoded(encoded([float("inf"), float("nan"), -0.0, 2**53])) == ["inf", "nan", -0.0, 2**53]


def test_a_launch_of_a_kernel_that_was_never_compiled_is_reported(tmp_path: Path) -> None:
    row = Report(saved(tmp_path, [launch(0, arg("x", "in", "x"))])).index["runs"][0]["kernels"][0]

    assert (row["name"], row["passes"], row["launches"]) == (kernel().name, 0, 1)


def test_the_committed_program_was_built_from_its_source() -> None:
    digest = hashlib.sha256()
    for path in [*sorted((PAGE / "src").iterdir()), PAGE / "package-lock.json"]:
        digest.update(path.read_bytes())

    for name in ("report.js", "report.css"):
        built = (PAGE.parent / "bundle" / name).read_text()
        assert f"source sha256 {digest.hexdigest()};" in built, "run `make page`"


def test_the_locked_packages_name_no_registry() -> None:
    assert "resolved" not in (PAGE / "package-lock.json").read_text()


# ---- more than two runs, and answers that commands kept


def test_a_table_of_three_runs_says_which_kernel_differs_in_which_run(tmp_path: Path) -> None:
    def run(folder: str, left: str, warps: int = 4) -> store.Run:
        made = launch(0, arg("x", "in", "x"), arg("y", "out", "-", left), name="make")
        made = replace(made, kernel=replace(made.kernel, hash=f"{warps} warps", num_warps=warps))
        used = launch(1, arg("y", "in", "y"), arg("z", "out", "-", "z"), name="use")
        return saved(tmp_path / folder, [made, used])

    report = Report(run("a", "y"), run("b", "other"), run("c", "y", warps=8), status=1)
    table = report.index["table"]

    assert [(one["name"], one["differs"]) for one in table["kernels"]] == [("make", True), ("use", False)]
    assert [one["code"] for one in table["kernels"][0]["runs"]] == [0, 0, 1]
    assert [one["values"] for one in table["kernels"][0]["runs"]] == [0, 1, 0]
    assert report.index["findings"][0]["title"] == "the code of make differs"
    assert not any("--anyway" in command for one in table["compared"] for command in one["next"])
    assert [one["status"] for one in table["compared"]] == [0, 1, 1]
    assert report.printed["table"]["kernels"] == table["kernels"]


def test_a_table_of_runs_of_other_cases_compares_them_anyway(tmp_path: Path) -> None:
    used = [launch(0, arg("x", "in", "x"), arg("y", "out", "-", "y"), name="use")]
    runs = [saved(tmp_path / folder, used) for folder in "ab"]
    info = replace(runs[0].info, case="other")
    runs.append(store.Run(store.create(tmp_path / "c", info).path))

    compared = Report(*runs, status=2).index["table"]["compared"]

    assert ["--anyway" in one["next"][0] for one in compared[1:]] == [False, True]


def test_an_answer_that_a_command_kept_is_a_finding_with_its_tables_and_next_commands(tmp_path: Path) -> None:
    made = launch(0, arg("x", "in", "x"), arg("y", "out", "-", "y"), name="make")
    table = AnswerTable("Judged launches", ("launch", "verdict"), (("0", "off"),))
    heat = AnswerHeat("y", ((0.0, 1.5), (None, 2.0)))
    answers = [
        KeptAnswer(
            "judge", "tracing judge r", "0.1.0", f"2026-11-23T08:00:0{second}Z", status, (line,),
            ("tracing repro r",), 0, 0, "make", (table,), (), (heat,),
        )
        for second, status, line in ((1, 1, "✗ launch 0 make is off"), (0, 0, "every launch is right"))
    ]  # fmt: skip
    report = Report(saved(tmp_path, [made], answers))
    first = report.index["findings"][0]

    assert (first["title"], first["tone"]) == ("judge: launch 0 make is off", "bad")
    assert (first["launch"], first["next"]) == ([0, 0, 0], ["tracing repro r"])
    kept = report.index["runs"][0]["answers"]
    assert [one["status"] for one in kept] == [0, 1]
    assert kept[1]["tables"][0]["rows"] == [["0", "off"]]
    assert kept[1]["heat"][0]["cells"] == [[0.0, 1.5], [None, 2.0]]
    printed = report.printed["runs"][0]["answers"][0]
    assert (printed["command"], printed["launch"], printed["next"]) == (
        "tracing judge r",
        0,
        ["tracing repro r"],
    )


def test_an_answer_of_check_comes_after_what_accuses_something_and_stands_for_the_violations(
    tmp_path: Path,
) -> None:
    violation = Violation(
        "c", "mm", "aten.mm.default", "size 6", "a multiple of 8", True, "m.py:3", "x @ w", 0
    )
    lines = ("1 violation", "graph 0/0 forward", "  ✗ mm: size 6", "      m.py:3")
    answer = KeptAnswer("check", "tracing check r", "0.1.0", "2026-11-23T08:00:00Z", 1, lines)
    report = Report(saved(tmp_path, [], [answer, violation, Outcome("failed", "no")], ended=False))

    findings = [(one["tone"], one["title"]) for one in report.index["findings"]]
    assert findings == [("bad", "the program failed"), ("doubt", "check: 1 violation")]
    assert report.index["findings"][1]["lines"] == ["✗ mm: size 6"]


def test_what_differs_comes_before_an_answer_without_an_explanation_and_judge_is_not_asked_once_more(
    tmp_path: Path,
) -> None:
    answer = KeptAnswer(
        "judge", "tracing judge r", "0.1.0", "2026-11-23T08:00:00Z", 2, ("every launch is right",)
    )
    report = Report(saved(tmp_path, [], [answer, Outcome("differs", "output is off")], ended=False))

    first, second = report.index["findings"]
    assert (first["title"], second["title"]) == (
        "the results differ from eager",
        "judge: every launch is right",
    )
    assert not any("tracing judge" in one for one in first["next"])


def test_violations_are_counted_by_run_and_kind_of_constraint_also_where_there_is_none(
    tmp_path: Path,
) -> None:
    kinds = ("ShapeConstraint(alignment=8)", "DtypeConstraint(float32)")
    violations = [Violation(kinds[0], "mm", "mm", "6", "8", decided) for decided in (True, True, False)]
    writer = new_run(tmp_path)
    blob = writer.blob("")
    writer.append(CheckedGraph(0, "mock_backend", "forward", "0/0", kinds, blob, blob))
    writer.extend(violations)
    writer.close()

    counts = Report(store.Run(writer.path)).index["runs"][0]["constraints"]
    assert counts["ShapeConstraint"] == {"violated": 2, "undecided": 1}
    assert counts["DtypeConstraint"] == {"violated": 0, "undecided": 0}
