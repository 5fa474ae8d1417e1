"""`tracing passes` and `tracing show --launch`, on recorded runs, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton
from commands import DATA, tracing
from data import kernels
from handmade.records import compiled, new_run
from recorded.runs import recorded_passes
from rich.text import Text

from tracing.analyze.passes.compilations import compilation
from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.environment.installed_tools import nvdisasm
from tracing.model import Argument, Kernel, LaunchLine, Signature, TensorMeta
from tracing.record.passes.derivation import derive
from tracing.record.passes.recorder import PassRecorder
from tracing.report.passes.passes import diff_text
from tracing.store import Run

KERNELS = DATA / "kernels.py"
DOT = '%0 = tt.dot %a, %b : f32 loc("k.py":1:1)\n'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The passes of two kernels, compiled for a GPU that this machine need not have."""
    return recorded_passes(tmp_path_factory.mktemp("runs"), ("softmax", "sm_90"), ("matmul", "gfx942")).path


def shown(run: Path, *args: str) -> str:
    return printed("passes", run, *args)


def shown_line(run: Path, *args: str) -> str:
    return printed("line", run, *args)


def printed(command: str, run: Path, *args: str) -> str:
    done = tracing(command, str(run), *args, runs=run.parent)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout  # no colour in a pipe
    return done.stdout


def line_of(text: str) -> str:
    return str(next(n for n, line in enumerate(KERNELS.read_text().splitlines(), 1) if text in line))


def test_several_kernels_are_listed_and_the_passes_of_one_are_counted(recorded: Path) -> None:
    listed, table = shown(recorded), shown(recorded, "--kernel", "softmax")

    assert [line.split()[0] for line in listed.splitlines()[1:3]] == ["softmax", "matmul"]
    row = next(line.split() for line in table.splitlines() if "tritongpu-coalesce" in line)
    assert row[1:4] == ["ttgir", "tritongpu-coalesce", "yes"]
    assert int(row[5]) > 20  # operations, after


def test_options_that_every_kernel_has_are_shown_once_with_the_list_of_kernels(recorded: Path) -> None:
    listed, table = shown(recorded), shown(recorded, "--kernel", "softmax")
    one = shown(recorded, "--kernel", "softmax", "--pass", "tritongpu-coalesce")
    heading = table.partition("index ")[0]

    assert "options of every kernel:\n" in listed and "enable_fp_fusion=" in listed
    assert "enable_fp_fusion=" not in heading + one
    assert "arch='sm90'" in heading and "arch='sm90'" in one and "arch=" not in listed


def test_only_passes_that_changed_something_and_of_one_stage_are_shown_on_request(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "softmax", "--changed", "--stage", "ttir")

    assert "inline" in text
    assert "ttgir" not in text
    assert "canonicalize" not in text


@pytest.mark.parametrize("options", [(), ("--stage", "ttgir")])
def test_the_sum_is_of_all_passes_also_where_only_those_that_changed_something_are_shown(
    recorded: Path, options: tuple[str, ...]
) -> None:
    every, few = (shown(recorded, "--kernel", "softmax", *more, *options) for more in ((), ("--changed",)))
    total = every.splitlines()[-1]

    assert len(few.splitlines()) < len(every.splitlines())
    assert few.splitlines()[-1] == total
    assert total.startswith(f"{len(every.partition('index ')[2].splitlines()) - 2} passes, ")


def test_an_operation_is_traced_to_the_pass_that_replaces_it(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "matmul", "--op", "tt.dot")

    assert "disappears" in text
    assert "tt.dot: 1 before the first of these passes, 0 after the last" in text
    lowered = next(line for line in text.splitlines() if "convert-triton-amdgpu-to-llvm" in line)
    assert "rocdl.mfma" in lowered.partition("became")[2]


def test_the_operations_of_a_glob_are_shown_in_one_pass(recorded: Path) -> None:
    lowering = ("--pass", "convert-triton-gpu-to-llvm")

    text = shown(recorded, "--kernel", "softmax", *lowering, "--op", "tt.*")

    assert "convert-triton-gpu-to-llvm" in text and "coalesce" not in text
    assert "tt.load: 1 before the first of these passes, 0 after the last" in text


def test_a_pass_is_shown_with_its_pipeline_its_caller_and_its_diff(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "softmax", "--pass", "convert-triton-to-tritongpu")

    assert "(convert-triton-to-tritongpu{" in text  # the pipeline in triton-opt's syntax
    assert "compiler.py:" in text
    assert "+#blocked = #ttg.blocked<" in text
    assert "loc(" not in text


def test_a_python_line_is_traced_to_the_instructions_of_the_device(recorded: Path) -> None:
    place = f"kernels.py:{line_of('tl.exp(x - tl.max')}"

    text = shown_line(recorded, place, "--kernel", "softmax")

    assert f" inlined at {place}\n  ttir\n" in text
    assert "ex2.approx" in text
    assert ("MUFU.EX2" if nvdisasm() else "no nvdisasm was found") in text


def test_a_python_line_is_traced_through_a_single_stage_on_request(recorded: Path) -> None:
    place = f"kernels.py:{line_of('tl.exp(x - tl.max')}"

    text = shown_line(recorded, place, "--kernel", "softmax", "--stage", "ttgir")

    assert f"{place}\n  ttgir\n" in text
    assert "  ttir\n" not in text
    assert "ex2.approx" not in text


def test_the_ir_around_a_pass_is_written_as_it_was_recorded(recorded: Path, tmp_path: Path) -> None:
    of_pass = ("--kernel", "softmax", "--pass", "tritongpu-coalesce")
    file = tmp_path / "after.mlir"

    before = shown(recorded, *of_pass, "--before")
    assert shown(recorded, *of_pass, "--after", "-o", str(file)) == ""

    run = Run(recorded)
    record = find_pass(passes_of(run, compilation(run, "softmax")), "tritongpu-coalesce")
    assert before == run.text(record.before)
    assert file.read_text() == run.text(str(record.after))
    assert "loc(" in before


def test_an_amd_kernel_is_traced_to_its_assembly(recorded: Path) -> None:
    text = shown_line(recorded, f"kernels.py:{line_of('total = tl.dot(')}", "--kernel", "matmul")

    assert "v_mfma" in text
    assert "sass" not in text


def test_the_pass_that_a_process_died_in_is_reported_first_with_its_ir(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    compiled(writer, "add", DOT, ("ttir", "cse", DOT), ("ttgir", "tritongpu-pipeline", None))
    writer.close()

    text, ir = shown(writer.path), shown(writer.path, "--pass", "1")

    assert text.startswith("kernel add: pass tritongpu-pipeline (ttgir) failed: ")
    assert "pass      1 of add 00hash of ad: it did not end\n" in text
    assert f"next      tracing passes {writer.path} --kernel add --pass 1 > before.mlir\n" in text
    assert [line for line in ir.splitlines() if not line.startswith("//")] == [DOT.strip()]


FAILS = """
module {
  tt.func public @narrow(%in: !tt.ptr<f8E4M3FN>, %out: !tt.ptr<f32>) {
    %x = tt.load %in : !tt.ptr<f8E4M3FN>
    %y = tt.fp_to_fp %x : f8E4M3FN -> f32
    tt.store %out, %y : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_a_pass_that_failed_is_reported_with_the_compilers_message(tmp_path: Path) -> None:
    source = tmp_path / "narrow.ttir"
    source.write_text(FAILS)
    writer = new_run(tmp_path)
    with PassRecorder(writer), pytest.raises(RuntimeError):  # sm_80 has no such float
        triton.compile(str(source), target=kernels.TARGETS["sm_80"])
    derive(writer.path)
    writer.close()

    passes = shown(writer.path)
    run = tracing("show", str(writer.path), runs=tmp_path).stdout

    for text in (passes, run):
        assert "kernel narrow: pass convert-triton-gpu-to-llvm (llir) failed: " in text
        assert "only supported on compute capability >= 89" in text


def test_a_line_in_a_stage_that_a_kernel_lacks_is_refused(recorded: Path) -> None:
    asked = ("line", str(recorded), "kernels.py:1", "--kernel", "matmul", "--stage", "sass")
    done = tracing(*asked, runs=recorded.parent)

    assert done.returncode == 2
    assert "no stage sass" in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--kernel", "matmul", "--before"), "--before and --after are of a pass"),
        (("--kernel", "matmul", "--pass", "0", "--before", "--after"), "are two texts"),
        (("--kernel", "matmul", "--pass", "0", "-o", "x.mlir"), "-o takes the IR of --before or --after"),
        (("--kernel", "matmul", "--kernel", "softmax"), "one kernel at a time"),
        (("--kernel", "sofmax"), "has no kernel sofmax"),
        (("--pass", "0"), "has passes of 2 kernels"),
        (("--kernel", "matmul", "--pass", "csee"), "nearest: cse"),
        (("--kernel", "matmul", "--op", "tt.dott"), "there are: tt.dot"),
        (("--kernel", "matmul", "--stage", "ptx"), "no pass of stage ptx"),
        (("--kernel", "matmul", "--pass", "0", "--op", "tt.dot", "--before"), "leave out --op"),
    ],
)
def test_bad_input_is_refused_with_valid_alternatives(
    recorded: Path, args: tuple[str, ...], message: str
) -> None:
    done = tracing("passes", str(recorded), *args, runs=recorded.parent)

    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_change_of_locations_only_is_reported_as_such() -> None:
    moved = DOT.replace("k.py", "other.py")

    assert [str(line) for line in diff_text(DOT, moved, locations=False)] == [
        "only locations or the names of values changed: `--locations` shows them"
    ]
    assert Text(DOT.strip().replace("%0", "-%0", 1)) in diff_text(DOT, moved, locations=True)


@pytest.fixture
def launched(tmp_path: Path) -> Path:
    """Two launches of a kernel whose compilation was recorded."""
    writer = new_run(tmp_path)
    one = compiled(writer, "add", DOT, ("ttir", "cse", DOT))
    meta = TensorMeta((2, 3), (3, 1), "float32", "cuda:0")
    writer.append(Kernel(0, "add", one.hash, "cuda:90", 4, 3, 1, {"BLOCK": "64"}, {}, None, "k.py:1"))
    writer.append(Signature(0, 0, (8, 1, 1), "forward", "cuda:0", (Argument("x_ptr", "in", meta),)))
    writer.extend([LaunchLine(index, 0, 0, (index,)) for index in range(2)])
    writer.close()
    return writer.path


def test_a_launch_suggests_the_passes_of_its_kernel(launched: Path) -> None:
    text = tracing("show", str(launched), "--launch", "1", runs=launched.parent).stdout

    assert text.startswith("#1 add")
    assert "stride [3, 1], offset 0, cuda:0, storage 1" in text
    assert "compiled as add: 1 pass, 0 changed the IR, 1.5 ms" in text
    assert f"next        tracing passes {launched} --kernel add\n" in text


def test_an_unknown_launch_is_refused_with_the_range(launched: Path) -> None:
    done = tracing("show", str(launched), "--launch", "2", runs=launched.parent)

    assert done.returncode == 2
    assert "has no launch 2: its launches are 0 to 1" in done.stderr
