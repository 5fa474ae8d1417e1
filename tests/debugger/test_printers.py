"""LLVM's own printers in gdb and LLDB, taken from LLVM's sources if they are available."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from debugger.conftest import PROGRAMS
from debugger.editor import ROOT
from debugger.native import lldb_dap

from tracing.attach.terminal import COMMANDS

PROGRAM = """#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
int main() {
  llvm::SmallVector<int, 4> sizes = {128, 64, 32};
  llvm::StringRef name = "coalesce";
  return int(sizes.size() + name.size());
}
"""


def gdb(sources: Path, *commands: str, run: tuple[str, ...]) -> str:
    first = (f"source {COMMANDS}", f"triton-sources /nowhere {sources}")
    words = [word for line in first for word in ("-iex", line)]
    words += [word for line in commands for word in ("-ex", line)]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", *words, "--args", *run], capture_output=True, text=True
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def sources() -> Path:
    """A checkout of LLVM."""
    named = (os.environ.get("LLVM_SOURCES"), ROOT / "toolchain/llvm-project")
    sources = next((path for path in map(Path, filter(None, named)) if (path / "llvm/utils").is_dir()), None)
    if sources is None:
        pytest.skip("no sources of LLVM, which hold its printers; LLVM_SOURCES can name a checkout")
    return sources


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program with LLVM's types and their debug information."""
    prefix = next(iter(sorted(Path("/usr/lib").glob("llvm-*/include/llvm/ADT"))), None)
    if prefix is None or shutil.which("c++") is None:
        pytest.skip("no headers of LLVM in /usr/lib/llvm-*, or no C++ compiler: Debian's llvm-NN-dev, g++")
    llvm, folder = prefix.parents[2], tmp_path_factory.mktemp("program")
    (folder / "sizes.cpp").write_text(PROGRAM)
    build = ["c++", "-g", "-std=c++17", f"-I{llvm}/include", "sizes.cpp", "-o", "sizes", f"-L{llvm}/lib"]
    subprocess.run([*build, f"-l{'LLVM-' + llvm.name.removeprefix('llvm-')}"], check=True, cwd=folder)
    return str(folder / "sizes")


def test_the_printers_of_llvm_and_mlir_are_read_where_they_are(tmp_path: Path) -> None:
    for part in ("llvm", "mlir"):
        script = tmp_path / part / "utils/gdb-scripts/prettyprinters.py"
        script.parent.mkdir(parents=True)
        script.write_text(f"print('printers of {part}')")

    assert "printers of llvm\nprinters of mlir\n" in gdb(tmp_path, run=("true",))


def test_gdb_shows_what_is_in_a_vector_and_a_string(sources: Path, program: str) -> None:
    said = gdb(sources, "break 6", "run", "print sizes", "print name", run=(program,))

    assert "Size 3, Capacity 4 = {128, 64, 32}" in said and '= "coalesce"' in said


def test_lldb_shows_what_is_in_a_vector_and_a_string(sources: Path, program: str) -> None:
    lldb = lldb_dap().replace("lldb-dap", "lldb")
    if not lldb:
        pytest.skip("LLDB is not installed")
    words = [
        f"command script import {sources}/llvm/utils/lldbDataFormatters.py",
        "b 6",
        "run",
        "v sizes name",
    ]
    command = [lldb, "-b", *(word for line in words for word in ("-o", line)), program]
    said = subprocess.run(command, capture_output=True, text=True).stdout

    assert "sizes = size=3 {\n  [0] = 128\n" in said and 'name = "coalesce"' in said


def test_in_a_pass_of_the_wheel_a_string_of_llvm_is_shown(sources: Path) -> None:
    stop = ("break-pass tritongpu-coalesce", "run")
    shown = "print ((mlir::triton::gpu::CoalescePass *) $rdi)->getArgument()"
    said = gdb(sources, *stop, shown, run=(sys.executable, str(PROGRAMS / "add.py")))

    assert '$1 = "tritongpu-coalesce"' in said
