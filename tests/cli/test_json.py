"""The objects that commands print with --json have exactly the keys that docs/json.md documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import DATA, tracing
from documents.json_keys import documented, require_documented
from handmade.jobs import job
from handmade.records import arg, compiled, kernel, launch, new_run
from recorded.runs import recorded
from typer.testing import CliRunner

from tracing import store
from tracing.analyze.graphs.compiler_divergence import two_compilers
from tracing.analyze.judge.findings import JudgedLaunch, LibraryOff, NotLaunched, WrongElements
from tracing.analyze.judge.judgement import RunJudgement
from tracing.analyze.passes.compilations import compilations
from tracing.analyze.passes.operations import counts
from tracing.analyze.passes.source_map import stage_lines
from tracing.cli.answers.judge_answer import JudgedRun
from tracing.cli.answers.kept_answer import keep_answer
from tracing.cli.app import app
from tracing.record.outputs import Keep
from tracing.report.bisect.two_compilers import two_compilers_json
from tracing.store.graph_file import PythonLine

IR = "module {\n  tt.func public @kernel() {\n    tt.return\n  }\n}\n"
OTHER = IR.replace("tt.return", "gpu.barrier\n    tt.return")


def printed(*words: str, status: int = 0) -> str:
    """What a command prints, in this process."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == status, done.output
    return done.stdout


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[store.Run, store.Run]:
    """Two runs of a case; the second one launches with a different grid."""
    runs = tmp_path_factory.mktemp("runs")
    cases = (f"{DATA / 'faults.py'}:fault={fault}" for fault in ("none", "grid"))
    a, b = (recorded(case, runs, keep=Keep(inputs=True)) for case in cases)
    return a, b


def test_run_list_and_show(tmp_path: Path) -> None:
    done = tracing("run", "silu", "--no-passes", "--json", runs=tmp_path)
    require_documented(done.stdout, "## `tracing run`")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")

    require_documented(tracing("list", "--json", runs=tmp_path).stdout, "## `tracing list`")

    path = json.loads(done.stdout)["run"]
    shown = tracing("show", path, "--json", runs=tmp_path).stdout
    unset = [f"not_covered[].{key}" for key in ("what", "setting")]
    require_documented(shown, "## `tracing show`", *(unset if not json.loads(shown)["not_covered"] else ()))


def test_doctor() -> None:
    require_documented(printed("doctor", "--json"), "## `tracing doctor`")


def test_show_of_one_launch(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("show", str(pair[0].path), "--launch", "1", "--json", runs=pair[0].path.parent)

    assert [one["index"] for one in json.loads(done.stdout)["launches"]] == [1]


def test_winners(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("winners", str(pair[0].path), "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing winners`")


def test_passes_of_one_run_and_of_two(tmp_path: Path) -> None:
    paths = []
    for name, left in (("a", OTHER), ("b", IR)):
        writer = new_run(tmp_path / name)
        compiled(writer, "kernel", IR, ("ttir", "cse", left))
        compiled(writer, f"only_in_{name}", IR, ("ttir", "cse", IR), number=1)
        writer.close()
        paths.append(str(writer.path))

    require_documented(tracing("passes", paths[0], "--json", runs=tmp_path).stdout, "## `tracing passes`")
    done = tracing("passes", *paths, "--json", runs=tmp_path)
    require_documented(done.stdout, "### Of two runs", "pass.*", "diff")
    asked = printed("passes", *paths, "--kernel", "kernel", "--pass", "cse", "--json", status=1)
    unset = (f"only_{run}[].{key}" for run in "ab" for key in ("kernel", "hash", "target"))
    require_documented(asked, "### Of two runs", *unset)
    assert "+    gpu.barrier" in json.loads(asked)["diff"] or "-    gpu.barrier" in json.loads(asked)["diff"]
    assert done.returncode == json.loads(done.stdout)["status"] == 1


def test_report(pair: tuple[store.Run, store.Run], tmp_path: Path) -> None:
    paths = [str(one.path) for one in pair]
    keep_answer(pair[0], "judge", 0, ["every launch is right"])
    text = printed("report", *paths, "-o", str(tmp_path / "report.html"), "--json", status=1)

    title = "## `tracing report`"
    require_documented(text, title, *(key for key in documented(title) if key.startswith("table.")))
    assert json.loads(text)["bytes"] == (tmp_path / "report.html").stat().st_size


def test_report_of_three_runs(pair: tuple[store.Run, store.Run], tmp_path: Path) -> None:
    paths = [str(one.path) for one in (*pair, pair[0])]

    text = printed("report", *paths, "-o", str(tmp_path / "report.html"), "--json", status=1)

    title = "## `tracing report`"
    require_documented(text, title, *(key for key in documented(title) if ".answers[]." in key))


def test_passes_of_one_kernel_by_pass_and_by_operation(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    compiled(writer, "kernel", IR, ("ttir", "cse", OTHER))
    writer.close()
    path = str(writer.path)

    one = printed("passes", path, "--pass", "cse", "--json")
    ir = printed("passes", path, "--pass", "cse", "--after", "--json")
    history = printed("passes", path, "--op", "gpu.barrier", "--json")

    require_documented(one, "### With `--pass`")
    assert "+    gpu.barrier" in json.loads(one)["diff"]
    assert (json.loads(ir)["diff"], json.loads(ir)["ir"]) == (None, OTHER)
    require_documented(history, "### With `--op`")
    assert [row["operation"] for row in json.loads(history)["history"]] == ["gpu.barrier"]


@pytest.mark.soak
def test_repeat(tmp_path: Path) -> None:
    case = str(DATA / "poisoned.py")
    done = tracing("repeat", case, "--times", "2", "--perturb", "--deterministic", "--json", runs=tmp_path)

    require_documented(done.stdout, "## `tracing repeat`")
    assert done.returncode == json.loads(done.stdout)["status"] == 1


def test_ranks(tmp_path: Path) -> None:
    ones = [[launch(0, arg("x", "in", "x"), num_warps=warps)] for warps in (4, 4, 8)]
    done = tracing("ranks", str(job(tmp_path, *ones).path), "--json", runs=tmp_path)

    require_documented(done.stdout, "## `tracing ranks`")
    assert json.loads(done.stdout)["divergences"][0]["accused"] == {"ranks": [2], "certain": True}


def test_replay(pair: tuple[store.Run, store.Run]) -> None:
    a, b = (str(one.path) for one in pair)
    done = tracing("replay", a, "--against", b, "--times", "2", "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing replay`")


def test_swap(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("swap", *(str(one.path) for one in pair), "--anyway", "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing swap`")
    assert [one["kernel"] for one in json.loads(done.stdout)["to_blame"]] == ["scale"]


def test_sql_and_export(pair: tuple[store.Run, store.Run], tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path, runs = str(pair[0].path), pair[0].path.parent

    query = "select kernel, grid, 0.5 / 0 from launches"
    asked = printed("sql", path, query, "--json", "--runs", str(runs))
    written = printed("export", path, "--parquet", str(tmp_path / "tables"), "--json", "--runs", str(runs))

    require_documented(asked, "## `tracing sql`")
    assert json.loads(asked)["rows"][0][0] == "scale"
    require_documented(written, "## `tracing export`")
    assert all(Path(file).is_file() for file in json.loads(written)["files"])


def test_attach_lists_processes_that_have_triton_loaded_and_attaches_to_none() -> None:
    call = [sys.executable, "-c", "import triton._C.libtriton; print(flush=True); input()"]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        text = printed("attach", str(process.pid), "--json")
        process.communicate("\n")

    require_documented(text, "## `tracing attach`")
    assert json.loads(text)["processes"][0]["pid"] == process.pid


def test_debug_of_a_case_says_where_it_would_stop() -> None:
    text = printed("debug", "silu", "--pass", "tritongpu-coalesce", "--stage", "ttgir", "--json")

    require_documented(text, "## `tracing debug`")
    assert json.loads(text)["stop"] == {"kernel": "*", "stage": "ttgir", "pass": "tritongpu-coalesce"}


def test_opt_and_the_tools_of_llvm(tmp_path: Path) -> None:
    module = tmp_path / "module.mlir"
    module.write_text("module { llvm.func @f() { llvm.return } }")

    passed = printed("opt", str(module), "-cse", "--json")
    listed = printed("opt", "--list-passes", "--json")
    translated = printed("mlir-translate", "--mlir-to-llvmir", str(module), "--json")

    require_documented(passed, "## `tracing opt`")
    assert "llvm.func @f" in json.loads(passed)["text"]
    assert {"name": "cse", "options": []} in json.loads(listed)["passes"]
    require_documented(translated, TOOLS)
    ir = tmp_path / "f.ll"
    ir.write_text(json.loads(translated)["text"])
    optimised = printed("llvm-opt", "-S", str(ir), "--json")
    assembled = printed("llc", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_90", str(ir), "--json")
    for done in (optimised, assembled):
        require_documented(done, TOOLS)
    assert ".target sm_90" in json.loads(assembled)["text"]


TOOLS = "## `tracing mlir-translate`, `tracing llvm-opt` and `tracing llc`"


# ---- commands that compile


@pytest.fixture(scope="module")
def compiled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("compiled")
    assert tracing("run", "silu", "--keep-inputs", runs=runs).returncode == 0
    return store.recorded(runs)[0]


def test_judge() -> None:
    line = PythonLine("case.py", 3, "f", "x.cos()")
    wrong = WrongElements("out_ptr0", "buf0", "cos", 1, 4, (2,), 0.5, 0.25, 1e6, 64.0)
    launches = (
        JudgedLaunch(0, "triton_poi_fused_cos_0", 0, "off", ("cos",), (line,), (wrong,), "", (1,)),
        JudgedLaunch(1, "mine", -1, "no reference", why="a reason"),
    )
    finding = LibraryOff(0, "aten::mm", wrong, (line,))
    missing = NotLaunched(0, "triton_poi_fused_cos_0", ("cos",), 3, (line,))
    said = JudgedRun(RunJudgement(launches, (finding, missing), ("more",)), ("tracing bisect case.py",))

    of_run = {"run": "runs/a", "memory_evidence": []}
    require_documented(json.dumps({**of_run, **said.json()}), "## `tracing judge`")


@pytest.mark.soak
def test_lit_and_resume(compiled_run: Path) -> None:
    passes = json.loads(tracing("passes", str(compiled_run), "--json", runs=compiled_run.parent).stdout)
    kernel = passes["kernels"][0]
    name = next(one["name"] for one in kernel["passes"] if one["stage"] == "ttgir" and one["changed"])
    options = (str(compiled_run), "--kernel", kernel["hash"][:12], "--pass", name, "--json")

    lit = tracing("lit", *options, runs=compiled_run.parent)
    resume = tracing("resume", *options, "--to", "llir", runs=compiled_run.parent)

    require_documented(lit.stdout, "## `tracing lit`")
    require_documented(resume.stdout, "## `tracing resume`")


def test_passes_of_a_line_and_of_llvm(compiled_run: Path) -> None:
    run = store.Run(compiled_run)
    (kernel, *_) = compilations(run)
    stacks = (
        stack for stage in stage_lines(run, kernel, None) for one in stage.located for stack in one.stacks
    )
    frame = next(stacks)[0]
    kernel_json = ("--kernel", kernel.hash[:12], "--json")

    lines = printed("line", str(compiled_run), f"{frame.file}:{frame.line}", *kernel_json)
    llvm = printed("passes", str(compiled_run), *kernel_json, "--llvm")

    require_documented(lines, "## `tracing line`")
    assert json.loads(lines)["paths"][0]["stack"][0] == {"file": frame.file, "line": frame.line}
    require_documented(llvm, "### With `--llvm`")


@pytest.mark.soak
def test_repro(compiled_run: Path, tmp_path: Path) -> None:
    options = (str(compiled_run), "--launch", "0", "--output", str(tmp_path / "repro"), "--json")

    require_documented(tracing("repro", *options, runs=compiled_run.parent).stdout, "## `tracing repro`")


@pytest.mark.parametrize(("judge", "status"), [("true", 0), ("false", 2)])
def test_bisect(judge: str, status: int, compiled_run: Path) -> None:
    (kernel, *_) = {one.kernel.hash for one in store.Run(compiled_run).launches()}
    options = ("--kernel", kernel[:12], "--json")
    command = ("bisect", str(compiled_run), *options, "--", judge, "{ttgir}")
    done = tracing_before_command(*command, runs=compiled_run.parent)

    require_documented(done.stdout, "## `tracing bisect RUN`", *(LAYERS if status == 0 else ()))
    assert done.returncode == json.loads(done.stdout)["status"] == status


LAYERS = ("layers[].layer", "layers[].answer", "layers[].step.*", "layers[].because")


def tracing_before_command(*words: str, runs: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command like `tracing`, but accepts arguments after `--`."""
    at = words.index("--")
    line = [sys.executable, "-m", "tracing", *words[:at], "--runs", str(runs), *words[at:]]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_bisect_with_a_good_torch(tmp_path: Path) -> None:
    runs = []
    for name, left in (("a", OTHER), ("b", IR)):
        writer = new_run(tmp_path / name)
        compiled(writer, "k", IR, ("ttir", "cse", left))
        writer.append(kernel("k"))
        writer.close()
        runs.append(store.Run(writer.path))
    environments = [run.info.environment for run in runs]
    answer = two_compilers_json(two_compilers(*runs), [str(run.path) for run in runs], environments)

    require_documented(json.dumps({"status": 1, **answer}), "### With a good torch")


def test_reduce(compiled_run: Path) -> None:
    (kernel, *_) = {one.kernel.hash for one in store.Run(compiled_run).launches()}
    options = ("--kernel", kernel[:12], "--pass", "convert-triton-to-tritongpu", "--json")
    judge = ("sh", "-c", "! grep -q ttg.num-warps $0", "{after}")
    done = tracing_before_command(
        "reduce", str(compiled_run), *options, "--", *judge, runs=compiled_run.parent
    )

    require_documented(done.stdout, "## `tracing reduce`")
    answer = json.loads(done.stdout)
    shown = tracing("passes", str(compiled_run), *options, runs=compiled_run.parent)
    assert answer["operations"]["before"] == sum(json.loads(shown.stdout)["operations"]["before"].values())
    assert answer["operations"]["after"] == counts(answer["ir"]).total()
