"""Verify that the Triton that Python imports is the built one, with the built LLVM.

Each function checks the result of the build; the first that fails raises Problem.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.build.library import Library
from scripts.build.llvm_build import Llvm
from scripts.machine import output
from scripts.pins import Problem

HERE = Path(__file__).parent / "debuggee"
COALESCE = "lib/Dialect/TritonGPU/Transforms/Coalesce.cpp"
STOPPED = re.compile(r"(mlir::triton::gpu::CoalescePass::runOnOperation) .*? at (\S+):(\d+)", re.S)


def python(venv: Path) -> str:
    return str(venv.absolute() / "bin/python")  # not resolved: a venv's python is a link out of it


@contextmanager
def fresh() -> Iterator[dict[str, str]]:
    """Environment variables with an empty compiler cache."""
    with tempfile.TemporaryDirectory() as folder:
        yield {**os.environ, "TRITON_CACHE_DIR": folder, "TRITON_ALWAYS_COMPILE": "1"}


def imported(venv: Path, triton: Path) -> str:
    """The imported libtriton.so is the one in this tree."""
    code = "import triton._C.libtriton as library; print(library.__file__)"
    done = subprocess.run([python(venv), "-c", code], cwd="/", capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        raise Problem(
            f"the built Triton cannot be imported: {reason}",
            "make triton; its log is in build/ of Triton's tree",
        )
    loaded, expected = Path(done.stdout.strip()).resolve(), triton / "python/triton/_C/libtriton.so"
    if loaded != expected.resolve():
        raise Problem(
            f"Python imports {loaded}, {expected} was built", f"{python(venv)} -m pip uninstall triton"
        )
    return f"Python imports {loaded}"


def same_llvm(triton: Path, llvm: Llvm) -> str:
    """The LLVM in libtriton.so has the requested commit."""
    library = Library(triton / "python/triton/_C/libtriton.so")
    if not llvm.commit:
        shared = [name for name in library.needed() if name.startswith("libLLVM")]
        return f"its LLVM is the {llvm.kind}'s: {', '.join(shared) or 'linked into it'}"
    if library.llvm_commit() != llvm.commit:
        commit = library.llvm_commit()[:12] or "no commit"
        raise Problem(
            f"libtriton.so says its LLVM is {commit}, {llvm.commit[:12]} was built",
            "make clean ALL=1; make triton",
        )
    return f"its LLVM is {llvm.commit[:12]}, from {llvm.folder}"


def compiles(venv: Path) -> str:
    """A kernel compiles to a cubin for sm_90."""
    with fresh() as environment:
        command = [python(venv), str(HERE / "kernel.py")]
        done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)
    match = re.fullmatch(r"True (\d+)\s*", done.stdout)
    if not match:
        last = "\n    ".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise Problem(f"a kernel does not compile for sm_90:\n    {last}", "make doctor")
    return f"a kernel compiles for sm_90: a cubin of {match.group(1)} bytes"


def stops(venv: Path, triton: Path) -> str:
    """gdb stops in a pass of Triton, and shows its file and line."""
    if not output("gdb", "--version"):
        return "not tried: no gdb is installed, so stops in passes are untested"
    _, line = lines_of_pass(triton / COALESCE)
    position = f"{Path(COALESCE).name}:{line}"
    command = ["gdb", "-nx", "-batch", "-x", str(HERE / "stop.gdb"), "-ex", f"break {position}", "-ex", "run"]
    with fresh() as environment:
        program = ["--args", python(venv), str(HERE / "kernel.py")]
        done = subprocess.run([*command, *program], cwd="/", env=environment, capture_output=True, text=True)
    match = STOPPED.search(done.stdout)
    if not match or Path(match.group(2)).name != Path(COALESCE).name:
        last = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-6:])
        raise Problem(f"gdb did not stop at {position}:\n    {last}", "make doctor: gdb, ptrace, symbols")
    return f"gdb stops in {match.group(1)} at {match.group(2)}:{match.group(3)}"


def lines_of_pass(source: Path) -> tuple[int, int]:
    """Numbers of the line on which a pass's runOnOperation begins, and of its first statement."""
    lines = source.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines, 1) if "void runOnOperation() override {" in line)
    inside = enumerate(lines[start:], start + 1)
    return start, next(i for i, line in inside if line.strip() and not line.strip().startswith("//"))


def lit(venv: Path, triton: Path, build: Path, llvm: Llvm) -> str:
    """Those of Triton's lit tests that this LLVM can run pass."""
    left_out = [] if asserts(llvm) else printing(triton / "test")
    lit_main = "from lit.main import main; main()"  # the package cannot be run by -m
    command = [python(venv), "-c", lit_main, "-s", "--no-progress-bar", str(build / "test")]
    if left_out:
        command += ["--filter-out", "|".join(f" {re.escape(name)}$" for name in left_out)]
    done = subprocess.run(command, capture_output=True, text=True)
    (build / "lit.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    counts = re.findall(r"^ *(\w[\w ]*?) *: *(\d+)(?: \(.*\))?$", done.stdout + done.stderr, re.M)
    summary = ", ".join(f"{number} {name.lower()}" for name, number in counts)
    if done.returncode:
        raise Problem(
            f"Triton's lit tests fail: {summary or 'no test ran'}", f"which and why is in {build}/lit.log"
        )
    passed = f"Triton's lit tests pass{': ' + summary if summary else ''}"
    if left_out:
        passed += f"; not run, for this LLVM has no assertions and so no --debug: {', '.join(left_out)}"
    return passed


def asserts(llvm: Llvm) -> bool:
    """True if an LLVM has assertions, by its CMake package; without them, it lacks --debug."""
    config = Path(llvm.folder, "lib/cmake/llvm/LLVMConfig.cmake").read_text(encoding="utf-8")
    return bool(re.search(r"set\(LLVM_ENABLE_ASSERTIONS (?:ON|TRUE|YES|1)\)", config, re.I))


def printing(tests: Path) -> list[str]:
    """The tests below a folder that check what passes print with --debug, by their paths in it."""
    files = (file for end in ("mlir", "ll") for file in tests.rglob(f"*.{end}"))
    asked = re.compile(r"RUN:.*\s--?debug(?:-only\S*)?(?:[\s|]|$)", re.M)
    return sorted(
        file.relative_to(tests).as_posix()
        for file in files
        if asked.search(file.read_text(encoding="utf-8", errors="replace"))
    )


def prove(proofs: list[Callable[[], str]], say: Callable[[str], None]) -> None:
    for each in proofs:
        say(each())
        sys.stdout.flush()
