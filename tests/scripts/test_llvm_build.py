"""The LLVM build: only Triton's targets, as many jobs as the machine can run, resumable if interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import script, script_module
from handmade.repositories import STANDIN, git, name_llvm, publish, write_pins

failure, llvm_build, ninja_build, pins, recipe = map(
    script_module, ("build.failure", "build.llvm_build", "build.ninja_build", "pins", "build.recipe")
)
Problem = pins.Problem
CLANG = recipe.Compiler("clang", "clang++", 22, "lld", "")
GCC = recipe.Compiler("gcc", "g++", 0, "", "")
GB = 10**9

pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja: make doctor"
)


def quiet(_message: str) -> None:
    pass


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Triton's tree and LLVM's, each without git."""
    triton, llvm = tmp_path / "triton", tmp_path / "llvm"
    shutil.copytree(STANDIN / "triton", triton)
    shutil.copytree(STANDIN / "llvm-project", llvm)
    name_llvm(triton, "5" * 40)
    return triton, llvm


def options(tmp_path: Path, trees: tuple[Path, Path]) -> list[object]:
    triton, llvm = trees
    where = ["--toolchain", tmp_path / "tools", "--venv", tmp_path / "none"]
    return [*where, "--triton-src", triton, "--llvm-src", llvm]


def script_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "scripts.build.llvm_build", *map(str, arguments)]


def build_folder(tmp_path: Path) -> Path:
    return next((tmp_path / "tools").glob("llvm-*-Debug-*"))


# ---------------------------------------------------------------- the whole build


def test_a_tag_is_built_into_the_libraries_that_triton_links(tmp_path: Path) -> None:
    llvm = publish(tmp_path / "llvm", STANDIN / "llvm-project")
    triton = publish(tmp_path / "triton", STANDIN / "triton")
    name_llvm(triton.work, git(llvm.work, "rev-parse", "HEAD"))
    triton.commit()
    triton.tag("v3.8.0")
    known = write_pins(tmp_path / "pins.toml", triton.url, llvm.url, llvm.url)

    done = script(
        "build.llvm_build.py", "--pins", known, "--toolchain", tmp_path / "tools", "--venv", tmp_path / "none"
    )

    assert done.returncode == 0, done.stderr
    built = {path.name for path in build_folder(tmp_path).glob("lib/*.a")}
    assert built == {"libMLIRIR.a", "libLLVMSupport.a", "liblldELF.a"}
    assert {path.name for path in build_folder(tmp_path).glob("bin/*")} == {
        "FileCheck",
        "mlir-tblgen",
        "mlir-translate",
    }


def test_the_estimate_comes_before_the_build_and_the_figures_after(
    tmp_path: Path, trees: tuple[Path, Path]
) -> None:
    said = script("build.llvm_build.py", *options(tmp_path, trees)).stdout.splitlines()

    estimate = next(i for i, line in enumerate(said) if "of CPU time" in line and "about" in line)
    figures = next(i for i, line in enumerate(said) if line.startswith("llvm: built: "))
    assert estimate < figures and "GB of memory" in said[figures] and "GB of disk" in said[figures]


def test_a_second_build_has_nothing_to_do(tmp_path: Path, trees: tuple[Path, Path]) -> None:
    script("build.llvm_build.py", *options(tmp_path, trees))
    again = script("build.llvm_build.py", *options(tmp_path, trees))

    assert "nothing is left to build" in again.stdout and "configuring" not in again.stdout


def test_a_failed_file_shows_its_own_error_and_the_path_of_the_log(
    tmp_path: Path, trees: tuple[Path, Path]
) -> None:
    (trees[1] / "mlir/lib/IR.cpp").write_text("int mlir_ir() { return missing; }\n")

    done = script("build.llvm_build.py", *options(tmp_path, trees))
    said = done.stderr.splitlines()

    assert done.returncode == 2 and said[0].endswith("IR.cpp.o failed:")
    assert "missing" in done.stderr and len(said) < 16 and "build.log; the same command continues" in said[-1]


def test_cmakes_first_error_is_shown_on_one_line(tmp_path: Path, trees: tuple[Path, Path]) -> None:
    (trees[1] / "mlir/CMakeLists.txt").write_text(f'message(FATAL_ERROR "{"zlib " * 30}is needed")\n')

    done = script("build.llvm_build.py", *options(tmp_path, trees))

    assert done.returncode == 2 and "could not be configured: zlib zlib" in done.stderr
    assert "zlib is needed" in done.stderr.splitlines()[0]


# ---------------------------------------------------------------- interrupted

# A compiler launcher that at the third file once sends a signal to ninja and to its parent.
SENDER = """#!/bin/sh
"$@"; status=$?
echo >> {count}
[ $(wc -l < {count}) -ne 3 ] || kill -{signal} -$(ps -o sid= $$ | tr -d ' ')
exit $status
"""


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 2)])
def test_an_interrupted_build_is_resumed_by_the_same_command(
    tmp_path: Path, trees: tuple[Path, Path], sent: signal.Signals, status: int
) -> None:
    launcher = tmp_path / "launcher"
    launcher.write_text(SENDER.format(count=tmp_path / "count", signal=int(sent)))
    launcher.chmod(0o755)
    command = [*options(tmp_path, trees), "--launcher", launcher, "--jobs", 1]

    first = subprocess.run(script_command(*command), stdout=subprocess.DEVNULL, start_new_session=True)
    half = build_folder(tmp_path)
    second = script("build.llvm_build.py", *command)

    assert (first.returncode, second.returncode) == (status, 0)
    assert (half / "lib/libMLIRIR.a").exists() and "configuring" not in second.stdout


def test_the_times_of_an_interrupted_build_are_added_up(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    ninja_build.keep(log, ninja_build.Figures(10, 60.0, 100.0, 2 * GB), whole=False)
    whole = ninja_build.keep(log, ninja_build.Figures(5, 30.0, 50.0, GB), whole=True)
    later = ninja_build.keep(log, ninja_build.Figures(1, 1.0, 1.0, 1), whole=True)

    assert whole == ninja_build.Figures(15, 90.0, 150.0, 2 * GB)
    assert later == ninja_build.Figures(1, 1.0, 1.0, 1)


# ---------------------------------------------------------------- targets and arguments


def test_targets_are_those_that_triton_names_and_this_llvm_has() -> None:
    has = {
        "MLIRIR",
        "lldELF",
        "LLVMSupport",
        "MLIRCommentedOut",
        "LLVMUnneeded",
        "FileCheck",
        "mlir-translate",
        "opt",
    }

    targets = recipe.targets(STANDIN / "triton", has, clang=False)

    assert targets == ["FileCheck", "LLVMSupport", "MLIRIR", "lldELF", "mlir-translate"]


def test_a_tree_that_links_nothing_of_this_llvm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="links no library of this LLVM"):
        recipe.targets(tmp_path, {"MLIRIR"}, clang=False)


def test_clang_is_built_if_tritons_cmake_looks_for_it(tmp_path: Path) -> None:
    (tmp_path / "third_party/nvidia").mkdir(parents=True)
    (tmp_path / "third_party/nvidia/CMakeLists.txt").write_text('find_program(CXX NAMES\n clang++ PATHS "x")')

    assert recipe.wants_clang(tmp_path) and not recipe.wants_clang(STANDIN / "triton")


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("Debug", "-DCMAKE_BUILD_TYPE=Debug"),
        ("RelWithDebInfo", "-DLLVM_USE_SPLIT_DWARF=ON"),
        ("line-tables", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -gline-tables-only"),
    ],
)
def test_each_profile_has_its_symbols(profile: str, expected: str) -> None:
    arguments = recipe.arguments(CLANG, profile, recipe.Jobs(8, 2), "", clang=False, commit="5" * 40)

    assert expected in arguments and f"-DLLVM_FORCE_VC_REVISION={'5' * 40}" in arguments
    assert {"-DLLVM_PARALLEL_COMPILE_JOBS=8", "-DLLVM_PARALLEL_LINK_JOBS=2"} <= set(arguments)


# ---------------------------------------------------------------- number of jobs


@pytest.mark.parametrize(
    ("compiler", "cpus", "held", "asked", "expected"),
    [
        (CLANG, 128, 1000 * GB, 0, (128, 128)),
        (CLANG, 128, 64 * GB, 0, (53, 21)),
        (GCC, 128, 64 * GB, 0, (40, 5)),
        (GCC, 2, 3 * GB, 0, (1, 1)),
        (CLANG, 16, 64 * GB, 4, (4, 4)),
        (CLANG, 16, 64 * GB, 200, (200, 16)),
    ],
)
def test_jobs_follow_from_memory_and_cores(
    compiler: Any, cpus: int, held: int, asked: int, expected: tuple[int, int]
) -> None:
    jobs_ = recipe.jobs(compiler, asked=asked, cpus=cpus, bytes_held=held)

    assert (jobs_.compile, jobs_.link) == expected


def test_an_estimate_counts_compiles_and_divides_them_among_the_jobs() -> None:
    steps = ["Building CXX object a.o"] * 100 + ["Linking CXX static library b.a"]

    one, four = (recipe.estimate(steps, GCC, "Debug", recipe.Jobs(n, 1)) for n in (1, 4))

    assert one.steps == 101 and one.wall == one.cpu == pytest.approx(4 * four.wall)
    assert one.disk == four.disk and one.memory < four.memory


def test_too_little_memory_is_reported_before_anything_starts() -> None:
    with pytest.raises(Problem, match=r"2\.0 GB of memory were found, 3 GB were needed"):
        llvm_build.require_memory(2 * GB)


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (("cmake", "ninja"), "no C++ compiler was found (clang++, g++), one was needed"),
        (("cmake",), "ninja was not found, it was needed to build LLVM"),
        ((), "cmake was not found, it was needed to build LLVM"),
    ],
)
def test_missing_requirements_are_reported_before_anything_is_fetched(
    tmp_path: Path, there: tuple[str, ...], missing: str
) -> None:
    (tmp_path / "bin").mkdir()
    for name in there:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)

    done = script(
        "build.llvm_build.py", "--toolchain", tmp_path / "tools", PATH=str(tmp_path / "bin"), CC="", CXX=""
    )

    assert (done.returncode, done.stderr) == (2, f"llvm: {missing}\n  make doctor\n")


def test_a_launcher_of_several_words_is_one_program(tmp_path: Path) -> None:
    compiler = replace(CLANG, launcher="env FARM=here")
    program = llvm_build.launcher(tmp_path, tmp_path / "build", compiler)

    assert subprocess.check_output([program, "sh", "-c", "echo $FARM"], text=True) == "here\n"


def test_with_clang_and_no_launcher_headers_are_compiled_once(tmp_path: Path) -> None:
    program = llvm_build.launcher(tmp_path, tmp_path / "build", CLANG)

    assert subprocess.run([program, "true"]).returncode == 0
    assert (tmp_path / "build/pch/prefix.h").exists()
    assert llvm_build.launcher(tmp_path, tmp_path / "build", GCC) == ""


def test_a_missing_launcher_is_reported(tmp_path: Path, trees: tuple[Path, Path]) -> None:
    done = script("build.llvm_build.py", *options(tmp_path, trees), "--launcher", "no-such-farm")

    assert done.returncode == 2 and "the compiler launcher no-such-farm was not found" in done.stderr


def test_the_newest_clang_is_preferred_and_gcc_is_the_fallback(tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("clang-9", "clang++-9", "clang-22", "clang++-22", "clang++-x"):
        (tmp_path / name).touch()
    monkeypatch.setenv("PATH", str(tmp_path))

    assert recipe.pairs()[:3] == [("clang-22", "clang++-22"), ("clang-9", "clang++-9"), ("clang", "clang++")]


# ---------------------------------------------------------------- progress


def test_the_time_left_is_estimated_from_the_last_steps() -> None:
    shown: list[str] = []
    progress = ninja_build.Progress(100, shown.append)
    now = time.monotonic()
    progress.shown, progress.recent, progress.terminal = now - 60, deque([(now - 100, 50)]), False

    progress.count("[60/100] Building CXX object a.o")

    assert shown == ["60 of 100 steps, 7 min left"]


def test_an_incomplete_source_is_recognised_by_its_missing_files(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("rule r\n  command = true\nbuild made: r ARM.td\n")

    with pytest.raises(Problem, match=r"cannot be built: 'ARM\.td', needed by 'made', missing"):
        ninja_build.outstanding(tmp_path, ["made"])


def test_a_step_of_a_build_inside_the_build_is_not_counted() -> None:
    progress = ninja_build.Progress(4000, quiet)
    progress.count("[40/4000] Building CXX object a.o")
    progress.count("[150/200] Building CXX object NATIVE/b.o")

    assert progress.done == 40


@pytest.mark.parametrize(
    ("wrote", "cause"),
    [
        (
            ["FAILED: [code=1] a.o", "c++ a.cpp", "c++: fatal error: Killed signal terminated program"],
            "a.o ran out of memory",
        ),
        (
            ["FAILED: a.o", "c++ a.cpp", "fatal error: error writing: No space left on device"],
            "the disk is full at a.o",
        ),
        (
            ["FAILED: a.o", "c++ a.cpp", "note", "a.cpp:1: error: x", "[2/9] b.o", "b: error"],
            "a.o failed:\n    a.cpp:1: error: x",
        ),
        (["what pip said last"], "the build failed:\n    what pip said last"),
    ],
)
def test_the_output_of_a_failed_build_is_reduced_to_one_cause(wrote: list[str], cause: str) -> None:
    assert str(failure.diagnose(wrote, Path("build.log"))) == cause


# ---------------------------------------------------------------- resources


def test_the_memory_of_a_build_is_that_of_all_its_processes() -> None:
    alone = ninja_build.used(os.getpid()).memory
    with subprocess.Popen(
        [sys.executable, "-c", "x = bytearray(10**8); input()"], stdin=subprocess.PIPE
    ) as child:
        for _ in range(100):
            held = ninja_build.used(os.getpid()).memory
            if held > alone + 5 * 10**7:
                break
            time.sleep(0.05)
        child.communicate(b"\n")

    assert held > alone + 5 * 10**7


def test_the_time_of_a_failed_build_includes_orphaned_processes(tmp_path: Path) -> None:
    work = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"
    (tmp_path / "ninja").write_text(f"{work}\nsleep 2\necho ninja: build stopped: failed\nexec sleep 9\n")
    (tmp_path / "setup").write_text(f"sh {tmp_path}/ninja\nexit 1\n")  # if killed, it does not wait for ninja
    (tmp_path / "pip").write_text(f"sh {tmp_path}/setup\nexit 1\n")

    with pytest.raises(Problem):
        ninja_build.watch(["sh", str(tmp_path / "pip")], tmp_path / "build.log", 0, quiet, dict(os.environ))

    assert json.loads((tmp_path / "build.json").read_text())["cpu"] > 0.8  # the system counts in ticks


def test_the_next_command_uses_the_llvm_that_was_built(tmp_path: Path, trees: tuple[Path, Path]) -> None:
    first = script("build.llvm_build.py", *options(tmp_path, trees), "--profile", "line-tables")
    second = script("build.llvm_build.py", *options(tmp_path, trees))

    assert (
        first.returncode == 0 and "line-tables with" in second.stdout and "nothing is left" in second.stdout
    )
