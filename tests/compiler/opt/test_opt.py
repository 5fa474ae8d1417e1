"""`tracing opt`, for the behaviour that tests/lit does not cover."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TESTS
from recorded.kernels import needs_llvm_options
from triton._C.libtriton import ir

from tracing.compiler.adders import adder, new_context
from tracing.compiler.opt.command_line import command
from tracing.compiler.opt.diagnostics import Diagnostic, diagnostics, unmet, without_added
from tracing.compiler.opt.pipeline_text import passes_in
from tracing.compiler.opt.run import OptSettings, optimise
from tracing.errors import Problem

LIT = TESTS / "lit"
MODULE = "tt.func @f(%a: i32) -> i32 {\n  %c0 = arith.constant 0 : i32\n  %0 = arith.addi %a, %c0 : i32\n"
MODULE += "  tt.return %0 : i32\n}\n"


def opt(*args: str, text: str = MODULE, **env: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "tracing", "opt", *args]
    return subprocess.run(
        call, input=text, capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


@pytest.mark.soak
def test_lit_passes_every_file() -> None:
    pytest.importorskip("lit", reason="lit is not installed: `make test` installs it")
    call = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j2", str(LIT)]
    done = subprocess.run(
        call,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(LIT.parent.parent)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_a_module_on_standard_input_comes_out_with_its_passes_run() -> None:
    done = opt("-", "-canonicalize")

    assert done.returncode == 0
    assert "arith" not in done.stdout and "tt.return %arg0" in done.stdout


def test_the_result_goes_to_the_file_that_o_names(tmp_path: Path) -> None:
    done = opt("-", "-o", str(tmp_path / "out.mlir"))

    assert done.stdout == "" and "tt.func @f" in (tmp_path / "out.mlir").read_text()


def test_text_that_does_not_parse_fails_with_mlir_s_diagnostic_and_location() -> None:
    done = opt("-", text="tt.func @f() {\n  tt.retur\n}\n")

    assert done.returncode == 1
    assert "<stdin>:2:3: error:" in done.stderr


def test_an_unknown_pass_is_a_problem_with_near_names() -> None:
    done = opt("-", "-tritongpu-coalece")

    assert done.returncode == 1
    assert "tritongpu-coalesce" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    done = opt(str(tmp_path / "none.mlir"))

    assert done.returncode == 1 and "none.mlir" in done.stderr


def test_a_real_triton_opt_is_used_unless_the_stand_in_is_requested(tmp_path: Path) -> None:
    real = tmp_path / "triton-opt"
    real.write_text('#!/bin/sh\necho real "$@"\n')
    real.chmod(0o755)

    assert opt("-", "-cse", TRITON_OPT=str(real)).stdout == "real - -cse\n"
    assert "tt.func" in opt("-", "-cse", "--stand-in", TRITON_OPT=str(real)).stdout


def test_a_missing_triton_opt_is_refused() -> None:
    assert opt("-", TRITON_OPT="/nowhere/triton-opt").returncode == 1


def test_the_passes_are_listed() -> None:
    listed = opt("--list-passes").stdout.splitlines()

    assert "-cse" in listed and "-tritongpu-pipeline  num-stages dump-intermediate-steps" in listed


def test_one_dash_or_two_flags_and_passes_in_any_order() -> None:
    parsed = command(
        ["-a=x=1 y=2", "f.mlir", "--pass-pipeline=any(b)", "-split-input-file", "--o", "out", "-c"]
    )

    assert [one.name for one in parsed.settings.passes] == ["a", "b", "c"]
    assert parsed.settings.passes[0].options == {"x": "1", "y": "2"}
    assert (parsed.file, parsed.output, parsed.settings.split_input_file) == ("f.mlir", "out", True)


INVALID = """
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f() {
    %d = arith.constant dense<1.0> : tensor<128xf32, #layout>
    tt.return
  }
}
"""  # a pass of Proton makes invalid IR of it
LEAVES_INVALID_IR = "-convert-proton-nvidia-gpu-to-llvm"


def test_the_ir_is_verified_after_each_pass_unless_disabled() -> None:
    verified = opt("-", "--stand-in", LEAVES_INVALID_IR, text=INVALID)
    unverified = opt("-", "--stand-in", LEAVES_INVALID_IR, "-verify-each=0", text=INVALID)

    assert (verified.returncode, unverified.returncode) == (1, 0)
    assert "expected array attribute" in verified.stderr


def test_a_failure_leaves_a_reproducer_of_all_passes_or_of_the_one_that_failed(tmp_path: Path) -> None:
    asked = ("-", "--stand-in", "-symbol-dce", LEAVES_INVALID_IR)
    all_of_them, one = tmp_path / "all.mlir", tmp_path / "one.mlir"
    reproducer = "-mlir-pass-pipeline-crash-reproducer"

    failed = opt(*asked, f"{reproducer}={all_of_them}", text=INVALID)
    opt(*asked, reproducer, str(one), "-mlir-pass-pipeline-local-reproducer", text=INVALID)
    again = opt(str(all_of_them), "--stand-in", "-run-reproducer")

    assert f"a reproducer has been generated in `{all_of_them}`" in failed.stderr
    assert 'pipeline: "any(symbol-dce,convert-proton' in all_of_them.read_text()
    assert 'pipeline: "any(convert-proton' in one.read_text()
    assert again.returncode == 1 and "expected array attribute" in again.stderr


def test_a_successful_pipeline_leaves_no_reproducer(tmp_path: Path) -> None:
    file = tmp_path / "none.mlir"

    assert opt("-", "--stand-in", "-cse", f"-mlir-pass-pipeline-crash-reproducer={file}").returncode == 0
    assert not file.exists()


def test_ir_is_printed_around_the_passes_that_are_named_or_that_change_it() -> None:
    named = opt("-", "--stand-in", "-cse", "-canonicalize", "-mlir-print-ir-after=canonicalize").stderr
    before = opt("-", "--stand-in", "-cse", "-canonicalize", "-mlir-print-ir-before=cse,canonicalize").stderr
    changed = opt(
        "-", "--stand-in", "-canonicalize", "-cse", "-mlir-print-ir-after-all", "-mlir-print-ir-after-change"
    ).stderr

    assert re.findall("IR Dump (.*) //---", named) == ["After canonicalize"]
    assert re.findall("IR Dump (.*) //---", before) == ["Before cse", "Before canonicalize"]
    assert re.findall("IR Dump (.*) //---", changed) == ["After canonicalize"]


def test_a_failing_pass_s_ir_is_printed_on_request() -> None:
    done = opt(
        "-", "--stand-in", "-symbol-dce", LEAVES_INVALID_IR, "-mlir-print-ir-after-failure", text=INVALID
    )

    assert re.findall("IR Dump (.*) //---", done.stderr) == ["After convert-proton-nvidia-gpu-to-llvm Failed"]


def test_mlir_s_own_times_and_statistics_are_printed() -> None:
    assert "Execution time report" in opt("-", "--stand-in", "-cse", "-mlir-timing").stderr
    assert "Pass statistics report" in opt("-", "--stand-in", "-cse", "-mlir-pass-statistics").stderr
    assert opt("-", "--stand-in", "-cse", "-mlir-timing", "-mlir-print-ir-after-all").returncode == 1


@needs_llvm_options
def test_large_attributes_are_elided_on_request() -> None:
    text = "tt.func @f() -> tensor<4xi32> {\n  %d = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n"
    text += "  tt.return %d : tensor<4xi32>\n}\n"

    assert "__elided__" in opt("-", "--stand-in", "-mlir-elide-elementsattrs-if-larger=2", text=text).stdout


@pytest.mark.parametrize("spelling", ["arch", "gfx-arch", "arch-generation-name"])
@pytest.mark.parametrize("name", ["convert-triton-amdgpu-to-llvm", "tritonamdgpu-accelerate-matmul"])
def test_an_option_of_amd_s_passes_has_the_names_of_every_version(name: str, spelling: str) -> None:
    manager = ir.pass_manager(new_context())

    adder(name).add(manager, {spelling: "gfx950"})

    assert "=gfx950" in manager.get_pipeline_str()


@pytest.mark.parametrize(
    "flag", ["-mlir-print-stacktrace-on-diagnostic", "-mlir-debug-counter=x", "-irdl-file=f"]
)
def test_an_option_of_mlir_s_is_refused_as_one_and_not_as_a_pass(flag: str) -> None:
    with pytest.raises(Problem, match="the option --"):
        command([flag, "a.mlir"])


@pytest.mark.parametrize("words", [["a.mlir", "b.mlir"], ["a.mlir", "-o"], ["-emit-bytecode", "a.mlir"]])
def test_options_of_the_real_triton_opt_and_unknown_ones_are_refused(words: list[str]) -> None:
    with pytest.raises(Problem):
        command(words)


def test_the_passes_that_a_reproducer_names_are_run() -> None:
    resource = '{-# external_resources: { mlir_reproducer: { pipeline: "any(canonicalize)" } } #-}'

    asked = ("-run-reproducer", "-dump-pass-pipeline", "-verify-diagnostics")
    done = opt("-", *asked, text=f"{MODULE}\n{resource}\n")

    assert done.returncode == 0 and "arith" not in done.stdout
    assert done.stderr.startswith("Pass Manager with 1 passes:\nany(canonicalize")


def test_a_file_that_is_no_reproducer_is_a_problem() -> None:
    with pytest.raises(Problem, match="no reproducer"):
        optimise(MODULE, "f.mlir", OptSettings(run_reproducer=True))


def test_an_unexpected_diagnostic_fails_only_if_its_severity_is_verified() -> None:
    text = "nonsense\n"

    said = [
        optimise(text, "f.mlir", command([f"-verify-diagnostics{how}"]).settings).stderr
        for how in ("", "=all", "=only-expected")
    ]

    assert "unexpected error" in said[0] == said[1] and said[2] == ""


def test_a_failed_chunk_does_not_stop_the_others_and_lines_are_those_of_the_file() -> None:
    text = f"{MODULE}// -----\nnonsense\n// -----\n{MODULE}"
    done = optimise(text, "many.mlir", OptSettings(split_input_file=True))

    assert not done.passed
    assert done.text.count("tt.func") == 2 and "many.mlir:7:1: error:" in done.stderr


def test_a_pass_nested_where_the_bindings_can_run_none_is_refused() -> None:
    with pytest.raises(Problem, match=r"nested in gpu\.module"):
        optimise(MODULE, "f.mlir", OptSettings(passes_in("builtin.module(gpu.module(cse))")))


def test_what_crash_recovery_adds_is_left_out_of_diagnostics() -> None:
    said = "a:1:2: error: bad\nsource\n^\n"
    added = "a:0:0: error: Failures have been detected while processing an MLIR pass pipeline\nsource\n^\n"

    assert without_added(f"{said}{added}LLVM ERROR: last words\n") == f"{said}LLVM ERROR: last words\n"


def test_a_diagnostic_of_several_lines_is_one_message() -> None:
    said = "a:3:1: error: first\nsecond\nsource\n^\n<unknown>:0: error: nowhere\n"

    assert diagnostics(said, "a") == [
        Diagnostic(3, "error", "first\nsecond"),
        Diagnostic(None, "error", "nowhere"),
    ]


@pytest.mark.parametrize(
    ("text", "message", "met"),
    [
        ("// expected-error @+1 {{size}}\nop", "the size is wrong", True),
        ("op\n// expected-error @above {{size}}", "the size is wrong", False),
        ("// expected-error @below {{size}}\nop", "the shape is wrong", False),
        ("// expected-error-re @below {{the {{s.*}} is}}\nop", "the size is wrong", True),
        ("// expected-error @below {{the s.* is}}\nop", "the size is wrong", False),
        ("\n// expected-error @unknown {{size}}", "size", True),
        ("\nop", "the size is wrong", False),
    ],
)
def test_a_diagnostic_must_be_expected_on_its_line_with_its_words(text: str, message: str, met: bool) -> None:
    assert (unmet(text, [Diagnostic(2, "error", message)], "f") == []) is met


def test_an_unmet_expectation_is_reported_with_its_line() -> None:
    assert unmet("\n// expected-note {{here}}\n", [], "f.mlir") == [
        'f.mlir:2: error: expected note "here" was not produced'
    ]
