"""mlir-translate, opt and llc, as far as libtriton provides them, each in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

MODULE = """
module {
  llvm.func @f(%a: i32) -> i32 {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %0 = llvm.add %a, %c0 : i32
    llvm.return %0 : i32
  }
}
"""
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="LLVM IR is read on x86-64 only")


def tool(*args: str, text: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "tracing", *args]
    return subprocess.run(call, input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def llvm_ir() -> str:
    done = tool("mlir-translate", "--mlir-to-llvmir", text=MODULE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_mlir_becomes_llvm_ir(llvm_ir: str) -> None:
    assert "define i32 @f(i32 %0)" in llvm_ir
    assert "add i32 %0, 0" in llvm_ir


@X86
def test_llvm_ir_is_optimised_by_a_default_pipeline_or_printed_as_it_is(llvm_ir: str) -> None:
    assert "add i32" not in tool("llvm-opt", "-S", "-O1", "-", text=llvm_ir).stdout
    assert "add i32" not in tool("llvm-opt", "-passes=default<O2>", text=llvm_ir).stdout
    assert "add i32" in tool("llvm-opt", "-S", text=llvm_ir).stdout


def test_llvm_ir_becomes_assembly(llvm_ir: str) -> None:
    done = tool("llc", "-mtriple=nvptx64-nvidia-cuda", "-mcpu", "sm_90", text=llvm_ir)

    assert done.returncode == 0, done.stderr
    assert ".target sm_90" in done.stdout


@pytest.mark.parametrize("command", ["opt", "mlir-translate", "llvm-opt", "llc"])
def test_h_prints_the_help_and_reads_no_input(command: str) -> None:
    short, long = tool(command, "-h", text=""), tool(command, "--help", text="")

    assert short.returncode == 0 and short.stdout == long.stdout
    assert f" {command} [OPTIONS] " in short.stdout and "-h, --help" in short.stdout


@pytest.mark.parametrize(
    ("args", "text", "message"),
    [
        (("mlir-translate",), MODULE, "add --mlir-to-llvmir"),
        (("mlir-translate", "-mlir-to-llvmir"), "llvm.fun", 'tracing: loc("<stdin>":1:1): error: custom op'),
        (("mlir-translate", "-import-llvm"), MODULE, "the option -import-llvm is not supported"),
        (("llvm-opt", "-passes=instcombine"), "", "only LLVM's default pipelines"),
        (("llc",), MODULE, "names no target"),
        (("llc", "-mtriple=x", "a.ll", "b.ll"), "", "one file is read, not 2"),
        (("llc", "nowhere.ll"), "", "nowhere.ll"),
    ],
)
def test_an_unsupported_option_is_reported_with_exit_status_1(
    args: tuple[str, ...], text: str, message: str
) -> None:
    done = tool(*args, text=text)

    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
