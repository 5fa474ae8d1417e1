"""`break-pass` reads registers and code of each supported processor, optimised and not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from debugger.conftest import PROGRAMS
from debugger.native import lldb_dap

from tracing.attach.terminal import COMMANDS

ARM = "/usr/aarch64-linux-gnu"
STOP = ("bt 1", "pass-info")


def built(folder: Path, compiler: str, level: str) -> str:
    """The program with two passes; its name is that of a tool which holds MLIR."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    program = str(folder / "two-opt")
    subprocess.run(
        [compiler, level, "-std=c++17", str(PROGRAMS / "two-passes.cpp"), "-o", program], check=True
    )
    return program


def said(gdb: str, program: list[str], before: list[str], start: list[str]) -> str:
    first = [f"source {COMMANDS}", *before, "break-pass second*"]
    words = [word for line in first for word in ("-iex", line)]
    words += [word for line in (*start, *STOP) for word in ("-ex", line)]
    done = subprocess.run(
        [gdb, "-nx", "-q", "-batch", *words, "--args", *program], capture_output=True, text=True, timeout=120
    )
    return done.stdout + done.stderr


@contextmanager
def emulated(program: str, folder: Path) -> Iterator[str]:
    """The program on an emulated processor, before its first instruction; what gdb connects to."""
    socket = folder / "gdb"
    process = subprocess.Popen(
        ["qemu-aarch64", "-L", ARM, "-g", str(socket), program], stderr=subprocess.DEVNULL
    )
    try:
        while not socket.exists():
            assert process.poll() is None, "the emulator ended"
        yield str(socket)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_pass_is_recognised_by_its_name_on_this_processor(tmp_path: Path, level: str) -> None:
    output = said("gdb", [built(tmp_path, "c++", level)], [], ["run"])

    assert "in Second::runOnOperation" in output and "pass      second-pass, Second\n" in output


def test_a_program_that_execs_another_is_followed(tmp_path: Path) -> None:
    output = said("gdb", ["sh", "-c", f"exec {built(tmp_path, 'c++', '-O2')}"], [], ["run"])

    assert "in Second::runOnOperation" in output


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_pass_is_recognised_by_its_name_on_aarch64(tmp_path: Path, level: str) -> None:
    program = built(tmp_path, "aarch64-linux-gnu-g++", level)
    if not shutil.which("qemu-aarch64") or not shutil.which("gdb-multiarch"):
        pytest.skip("an emulator or a debugger of aarch64 is not there: qemu-user, gdb-multiarch")
    with emulated(program, tmp_path) as socket:
        start = [f"target remote {socket}", "continue"]
        output = said("gdb-multiarch", [program], [f"set sysroot {ARM}"], start)

    assert "in Second::runOnOperation" in output and "pass      second-pass, Second\n" in output


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lldb_tells_a_pass_by_its_name_too(tmp_path: Path, level: str) -> None:
    if not lldb_dap():
        pytest.skip("LLDB is not installed")
    program, script = built(tmp_path, "c++", level), COMMANDS.with_name("lldb_commands.py")
    words = [f"command script import {script}", "break-pass second*", "run", "bt"]
    command = [
        lldb_dap().replace("lldb-dap", "lldb"),
        "-b",
        *(x for line in words for x in ("-o", line)),
        program,
    ]
    output = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    assert "one-shot breakpoint" in output and "Second::runOnOperation" in output
