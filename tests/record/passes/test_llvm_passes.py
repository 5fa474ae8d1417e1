"""`tracing passes --llvm` derives LLVM's passes from a recorded run once and stores them in the run."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from commands import tracing
from data import kernels
from handmade.records import INFO
from handmade.runs import never_recorded
from recorded.kernels import needs_llvm_options

from tracing import store
from tracing.analyze.passes.compilations import compilation, compilations, label
from tracing.analyze.passes.llvm import instructions, llvm_passes, readable
from tracing.analyze.passes.pass_table import find_pass, passes_of
from tracing.analyze.passes.source_map import artefacts
from tracing.compiler.resume import resume_point_before
from tracing.environment import installed
from tracing.model import LlvmPasses
from tracing.record.passes.derivation import derive
from tracing.record.passes.llvm import derive_llvm
from tracing.record.passes.recorder import PassRecorder

pytestmark = needs_llvm_options
TARGETS = ("sm_90", "gfx942")
COMPILED = [f"{kernel}#{number}" for kernel in kernels.KERNELS for number, _ in enumerate(TARGETS, 1)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four kernels, compiled for two vendors."""
    here = msgspec.structs.replace(INFO.environment, triton=installed("triton"))
    writer = store.create(tmp_path_factory.mktemp("runs"), msgspec.structs.replace(INFO, environment=here))
    with PassRecorder(writer):
        for kernel in kernels.KERNELS:
            for target in TARGETS:
                kernels.compiled(kernel, target)
    derive(writer.path)
    writer.close()
    return writer.path


def derived(path: Path, kernel: str, edit: tuple[str, str] = ("", "")) -> LlvmPasses:
    run = store.Run(path)
    chosen = compilation(run, kernel)
    passes = passes_of(run, chosen)
    point = resume_point_before(passes[-1], passes, run.text)
    point = replace(point, ir=point.ir.replace(*edit, 1))
    return derive_llvm(run, chosen, point, artefacts(run, chosen), seconds=120)


def shown(path: Path, *args: str) -> str:
    done = tracing("passes", str(path), "--llvm", *args, runs=path.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "kernel",
    [one if one.endswith("#1") else pytest.param(one, marks=pytest.mark.soak) for one in COMPILED],
)
def test_llvm_reproduces_the_recorded_output_and_its_passes_form_a_chain(recorded: Path, kernel: str) -> None:
    passes, run = derived(recorded, kernel), store.Run(recorded)

    assert (passes.failure, passes.differs) == ("", ())
    middle = [one for one in passes.passes if one.stage == "llir" and one.after is not None]
    assert all(one.after == two.before for one, two in pairwise(middle))
    if kernel.endswith("#1"):  # AMD's stage goes on after LLVM: it sets attributes
        assert str(middle[-1].after) in artefacts(run, compilation(run, kernel)).values()


def test_each_kernel_is_derived_once_and_its_passes_are_stored_in_the_run(recorded: Path) -> None:
    table = shown(recorded, "--kernel", "softmax#1", "--changed")
    known = [*recorded.glob("llvm-*")]

    assert shown(recorded, "--kernel", "softmax#1", "--changed") == table
    assert [*recorded.glob("llvm-*")] == known
    assert "llir and ptx are equal to the recorded ones, byte for byte" in table
    row = next(line.split() for line in table.splitlines() if " early-cse " in line)
    assert (row[1], row[3], row[4], int(row[5]) > int(row[6])) == ("llir", "softmax", "yes", True)


def test_a_pass_by_name_is_shown_as_a_diff_without_locations(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "softmax#1", "--pass", "early-cse#1")

    assert text.startswith("early-cse  LLVM pass ")
    assert re.search(r"^    changes   \d+ -> \d+ instructions: ", text, re.MULTILINE)
    assert re.search(r"^\+  %\S+ = ", text, re.MULTILINE)
    assert "!dbg" not in text


def test_an_intrinsic_is_traced_to_instruction_selection(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "softmax#1", "--op", "llvm.maxnum.f32")

    assert "isel" in text
    assert "disappears" in text


def test_passes_that_llvm_does_not_print_are_reported(recorded: Path) -> None:
    text = shown(recorded, "--kernel", "softmax#1", "--pass", "Speculatively execute instructions")

    assert "LLVM prints no IR after this pass" in text
    assert "\ndefine ptx_kernel void @softmax(" in text


def test_a_pass_of_llvm_that_aborts_leaves_its_name_its_reason_and_its_ir(
    recorded: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(recorded, tmp_path / "run"))
    unknown = 'llvm.call_intrinsic "llvm.amdgcn.s.barrier"() : () -> ()'

    passes = derived(path, "vector_add#1", ("llvm.return", f"{unknown}\n llvm.return"))

    text = shown(path, "--kernel", "vector_add#1")
    assert text.startswith(
        f"nvptx-isel (LLVM pass {passes.passes[-1].index}, ptx) on function (vector_add) did not"
    )
    assert "LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.s.barrier" in text
    ir = shown(path, "--kernel", "vector_add#1", "--pass", "nvptx-isel")
    assert ir.startswith("; nvptx-isel")
    assert "@llvm.amdgcn.s.barrier()" in ir


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--pass", "instcombin"), "nearest: instcombine"),
        (("--pass", "9999"), "there are 1 to "),
        (("--stage", "ttir"), "stages that were recorded: llir, ptx"),
        (("--op", "fdivv"), "no operation of these passes is fdivv"),
    ],
)
def test_bad_input_is_answered_with_valid_alternatives(
    recorded: Path, args: tuple[str, ...], message: str
) -> None:
    done = tracing("passes", str(recorded), "--llvm", "--kernel", "softmax#1", *args, runs=recorded.parent)

    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_misspelt_pass_of_several_kernels_is_answered_with_near_names(recorded: Path) -> None:
    done = tracing("passes", str(recorded), "--llvm", "--pass", "early-csee", runs=recorded.parent)

    assert done.returncode == 2
    assert "LLVM has no pass early-csee\n  nearest: early-cse" in done.stderr


def test_a_pass_of_several_kernels_asks_for_one_of_them(recorded: Path) -> None:
    done = tracing("passes", str(recorded), "--llvm", "--pass", "early-cse", runs=recorded.parent)

    assert done.returncode == 2
    assert "choose one:" in done.stderr


@pytest.mark.soak
def test_a_run_of_another_triton_is_refused_unless_its_passes_are_stored(
    recorded: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(recorded, tmp_path / "run"))
    never_recorded(path, "llvm")
    info = (path / "run.json").read_text()
    (path / "run.json").write_text(info.replace(f'"triton": "{installed("triton")}"', '"triton": "3.1.0"'))

    done = tracing("passes", str(path), "--llvm", "--kernel", "softmax#1", runs=path.parent)

    assert done.returncode == 2
    assert "was recorded with Triton 3.1.0, and this is" in " ".join(done.stderr.split())
    assert "LLVM" in done.stderr


def test_output_that_differs_from_the_recorded_one_is_reported_and_not_stored(
    recorded: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(recorded, tmp_path / "run"))
    for known in (*path.glob("llvm-*"), *path.glob("sizes-*")):  # nor the note that these files were there
        known.unlink()
    question = ("passes", str(path), "--llvm", "--kernel", "vector_add#1")

    other = tracing(*question, runs=path.parent, DISABLE_LLVM_OPT="1")
    same = tracing(*question, runs=path.parent)

    assert "warning: llir and ptx differ from the recorded ones" in other.stderr
    assert "llir and ptx are equal to the recorded ones, byte for byte" in same.stdout


def test_a_compilation_that_did_not_reach_llvm_is_refused_with_that_reason(
    recorded: Path, tmp_path: Path
) -> None:
    from handmade.records import compiled

    path = Path(shutil.copytree(recorded, tmp_path / "run"))
    compiled(store.reopened(path), "dead", "ir", ("ttir", "cse", "ir"), ("ttgir", "pipeline", None))

    done = tracing("passes", str(path), "--llvm", "--kernel", "dead", runs=path.parent)

    assert "the compilation of dead did not reach LLVM" in done.stderr


def test_a_run_holds_the_passes_of_requested_kernels_only(recorded: Path) -> None:
    run = store.Run(recorded)
    known = [label(compilations(run), one) for one in compilations(run) if llvm_passes(run, one)]

    passes = llvm_passes(run, compilation(run, "softmax#1"))

    assert set(known) >= {"softmax#1"}
    assert passes is not None
    assert find_pass(passes.passes, "1").index == 1


IR = """\
define void @f(float %0) {
  %2 = tail call float @llvm.maxnum.f32(float %0, float 1.0), !dbg !7
    #dbg_value(float %2, !9, !DIExpression(), !7)
  %3 = call i32 asm "mov.u32 $0, x;", "=r"()
  call void @g()
  br label %4, !llvm.loop !5

4:                                                ; preds = %1
  store float %2, ptr null, align 4, !dbg !8
  ret void
}
!7 = !DILocation(line: 1)
"""


def test_calls_are_counted_by_intrinsic_and_the_rest_by_opcode() -> None:
    assert instructions(IR) == {"llvm.maxnum.f32": 1, "asm": 1, "call": 1, "br": 1, "store": 1, "ret": 1}


def test_machine_code_is_counted_by_opcode_without_flags_and_registers() -> None:
    code = (
        "# Machine code for function f: NoPHIs\n\nbb.0 (%ir-block.1):\n  liveins: $r0\n"
        "  renamable $r1, dead $scc = nuw nsw S_ADD_I32 killed $r0, 1\n"
        '  INLINEASM &"a = b" [sideeffect], $0:[def] = COPY\n  %3:b32 = COPY $r1\n  successors: %bb.1\n'
    )

    assert instructions(code) == {"S_ADD_I32": 1, "INLINEASM": 1, "COPY": 1}


def test_readable_ir_has_no_locations_and_numbers_blocks_like_values() -> None:
    text = readable(IR)

    assert "!" not in text
    assert "#dbg" not in text
    assert "\n%4: \n" in text
