"""The Triton build: from a tree and one LLVM into an environment, and a proof that this build is loaded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import script, script_module
from handmade.repositories import STANDIN, name_llvm

library, llvm_build, machine, pch, pins, proofs, recipe = map(
    script_module,
    ("build.library", "build.llvm_build", "machine", "build.pch", "pins", "build.proofs", "build.recipe"),
)
toolchain, triton_build, wheel_parts, wheel_source = map(
    script_module, ("build.toolchain", "build.triton_build", "build.wheel_parts", "build.wheel_source")
)
Problem = pins.Problem
CLANG = recipe.Compiler("clang", "clang++", 22, "lld", "")
GCC = recipe.Compiler("gcc", "g++", 0, "", "")

pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja: make doctor"
)


def quiet(_message: str) -> None:
    pass


def venv(folder: Path) -> Path:
    """A separate environment that sees the packages of this one, so that nothing has to be installed."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], cwd="/", check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    seen = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "seen.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in seen))
    return folder


class Built:
    """The stand-in Triton, built once for all tests of this module."""

    def __init__(self, folder: Path) -> None:
        self.triton, self.tools = folder / "triton", folder / "tools"
        shutil.copytree(STANDIN / "triton", self.triton)
        shutil.copytree(STANDIN / "llvm-project", folder / "llvm")
        name_llvm(self.triton, "5" * 40)
        (self.tools / "nvidia-3.8.0/bin").mkdir(parents=True)  # as after an earlier build
        (self.tools / "nvidia-3.8.0/bin/ptxas").write_text("of the wheel")
        self.venv = venv(folder / "venv")
        self.options = ("--toolchain", self.tools, "--venv", self.venv, "--triton-src", self.triton)
        self.llvm = script("build.llvm_build.py", *self.options, "--llvm-src", folder / "llvm")
        self.done = script("build.triton_build.py", *self.options)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("built"))


def said(built: Built, about: str) -> str:
    assert built.done.returncode == 0, built.llvm.stderr + built.done.stderr
    return next((line for line in built.done.stdout.splitlines() if about in line), "")


@pytest.mark.soak
def test_python_imports_the_library_that_was_built(built: Built) -> None:
    assert (
        said(built, "Python imports")
        == f"triton: Python imports {built.triton}/python/triton/_C/libtriton.so"
    )


def test_a_kernel_is_compiled_with_it(built: Built) -> None:
    assert "a kernel compiles for sm_90: a cubin of 4 bytes" in said(built, "sm_90")


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb: make doctor")
def test_gdb_stops_in_a_pass_of_the_build_at_file_and_line(built: Built) -> None:
    assert re.search(r"CoalescePass::runOnOperation at \S*/Coalesce\.cpp:9$", said(built, "gdb stops"))


def test_the_wheels_tools_are_linked_into_the_folder_that_tritons_build_reads(built: Built) -> None:
    assert (built.triton / "third_party/nvidia/backend/bin/ptxas").read_text() == "of the wheel"


def test_the_library_has_symbols_and_each_file_its_command(built: Built) -> None:
    commands = json.loads((triton_build.build_folder(built.triton) / "compile_commands.json").read_text())

    assert {".symtab", ".debug_line"} <= library.Library(
        built.triton / "python/triton/_C/libtriton.so"
    ).names()
    assert all("-gsplit-dwarf" in one["command"] for one in commands)


def test_its_llvm_is_recognised_even_if_the_source_has_no_commit(built: Built) -> None:
    llvm = llvm_build.read(toolchain.Toolchain(built.tools))

    assert len(llvm.commit) == 40
    assert said(built, "its LLVM") == f"triton: its LLVM is {llvm.commit[:12]}, from {llvm.folder}"


def test_a_different_llvm_than_the_built_one_is_noticed(built: Built) -> None:
    llvm = llvm_build.Llvm("/llvm", "5" * 40, "source")

    with pytest.raises(Problem, match=r"libtriton\.so says its LLVM is \w{12}, 555555555555 was built"):
        proofs.same_llvm(built.triton, llvm)


def test_another_triton_in_the_environment_is_noticed(built: Built, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=rf"Python imports {built.triton}/\S+, {tmp_path}/\S+ was built"):
        proofs.imported(built.venv, tmp_path)


def test_a_failed_file_shows_its_error_and_other_objects_are_kept(built: Built) -> None:
    source = built.triton / "python/src/main.cc"
    before = source.read_text()
    source.write_text("int x = missing;\n")
    try:
        done = script("build.triton_build.py", *built.options)
    finally:
        source.write_text(before)

    assert done.returncode == 2 and "main.cc.o failed:" in done.stderr and "missing" in done.stderr
    assert len(done.stderr.splitlines()) < 16
    # setuptools ignores a failed build and starts it once more
    log = (built.triton / "build/debug-triton.log").read_text().rpartition("\n$ ")[2]
    assert log.count("FAILED: ") == 1


def test_a_missing_llvm_is_reported_with_the_command_that_builds_one(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no LLVM is ready") as caught:
        llvm_build.read(toolchain.Toolchain(tmp_path))
    assert caught.value.remedy == "make llvm"


def test_without_an_environment_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is no environment with pip"):
        triton_build.require_venv(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_tree_is_refused_before_it_is_built(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)

    with pytest.raises(Problem, match="is read-only; Triton builds inside of its own tree"):
        toolchain.require_writable(tmp_path)


# ---------------------------------------------------------------- CMake's arguments


def test_lld_writes_an_index_and_a_distributions_llvm_is_linked_once() -> None:
    arguments = triton_build.cmake_arguments(llvm_build.Llvm("/usr/lib/llvm-23", "", "system"), CLANG, [])

    assert "-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld -Wl,--gdb-index" in arguments
    assert any(one.startswith("-DCMAKE_PROJECT_triton_INCLUDE=") for one in arguments)
    assert any("-fstandalone-debug" in one for one in arguments)


def test_an_llvm_with_symbols_needs_no_second_copy_of_its_classes() -> None:
    arguments = " ".join(triton_build.cmake_arguments(llvm_build.Llvm("/llvm", "5" * 40, "source"), GCC, []))

    assert "standalone" not in arguments and "-fuse-ld" not in arguments and "PROJECT_triton" not in arguments


def test_a_distributions_libraries_all_become_the_shared_one(tmp_path: Path) -> None:
    hook = triton_build.CMAKE / "link_llvm_once.cmake"
    (tmp_path / "CMakeLists.txt").write_text(
        """cmake_minimum_required(VERSION 3.20)
project(triton NONE)
add_library(LLVM SHARED IMPORTED)
set_target_properties(LLVM PROPERTIES IMPORTED_LOCATION /usr/lib/libLLVM.so)
add_library(LLVMPasses STATIC IMPORTED)
set_target_properties(LLVMPasses PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
  IMPORTED_LOCATION_RELEASE /usr/lib/libLLVMPasses.a INTERFACE_LINK_LIBRARIES LLVMCore)
function(show)
  get_target_property(found LLVMPasses IMPORTED_LOCATION_RELEASE)
  message(STATUS "linked: ${found}")
endfunction()
cmake_language(DEFER CALL show)
"""
    )
    command = [
        "cmake",
        "-G",
        "Ninja",
        "-S",
        tmp_path,
        "-B",
        tmp_path / "b",
        f"-DCMAKE_PROJECT_triton_INCLUDE={hook}",
    ]

    done = subprocess.run(command, capture_output=True, text=True)

    assert "linked: /usr/lib/libLLVM.so" in done.stdout, done.stderr


def test_only_missing_packages_are_required_for_the_build() -> None:
    assert triton_build.requirements(STANDIN / "triton") == ["setuptools>=40.8.0", "wheel", "lit<23"]


# ---------------------------------------------------------------- Triton's own tests


def lit_tests(folder: Path, assertions: str) -> tuple[Path, Path, Path, llvm_build.Llvm]:
    """A tree of two tests, one of which passes only with assertions, its build, and an LLVM."""
    tests, build, package = folder / "test", folder / "build", folder / "llvm/lib/cmake/llvm"
    for made in (tests / "Conversion", build / "test", package):
        made.mkdir(parents=True)
    (tests / "plain.mlir").write_text("// RUN: true %s --mlir-print-debuginfo\n")
    status = "true" if assertions == "ON" else "false"
    (tests / "Conversion/debug.mlir").write_text(f"// RUN: {status} %s --debug| cat\n")
    (build / "test/lit.cfg").write_text(
        "import lit.formats\n"
        "config.name, config.suffixes = 'TRITON', ['.mlir']\n"
        "config.test_format = lit.formats.ShTest(False)\n"
        f"config.test_source_root = {str(tests)!r}\n"
        f"config.test_exec_root = {str(build / 'test')!r}\n"
    )
    (package / "LLVMConfig.cmake").write_text(f"set(LLVM_ENABLE_ASSERTIONS {assertions})\n")
    return Path(sys.prefix), folder, build, llvm_build.Llvm(str(folder / "llvm"), "", "system")


def test_without_assertions_in_llvm_tests_that_need_debug_are_listed_and_not_run(tmp_path: Path) -> None:
    passed = proofs.lit(*lit_tests(tmp_path, "OFF"))

    assert "1 passed" in passed
    assert "not run, for this LLVM has no assertions and so no --debug: Conversion/debug.mlir" in passed


def test_with_assertions_in_llvm_all_of_tritons_tests_are_run(tmp_path: Path) -> None:
    passed = proofs.lit(*lit_tests(tmp_path, "ON"))

    assert "2 passed" in passed
    assert "not run" not in passed


def test_a_test_of_triton_that_fails_is_counted_and_its_log_named(tmp_path: Path) -> None:
    venv, triton, build, llvm = lit_tests(tmp_path, "ON")
    (triton / "test/plain.mlir").write_text("// RUN: false\n")

    with pytest.raises(Problem, match="1 failed") as raised:
        proofs.lit(venv, triton, build, llvm)

    assert str(build / "lit.log") in raised.value.remedy


# ---------------------------------------------------------------- device code and headers


def wanting_clang(folder: Path) -> Path:
    (folder / "third_party/nvidia").mkdir(parents=True)
    (folder / "third_party/nvidia/CMakeLists.txt").write_text("find_program(CXX NAMES clang++)")
    return folder


def test_without_a_clang_the_wheels_device_code_is_used(tmp_path: Path) -> None:
    triton, llvm, wheel = wanting_clang(tmp_path / "triton"), tmp_path / "llvm", tmp_path / "wheel"
    (llvm / "bin").mkdir(parents=True)
    (wheel / "lib").mkdir(parents=True)
    (wheel / wheel_parts.DEVICE_CODE).write_text("define void @gsan")

    wheel_parts.supply_clang(llvm, triton, wheel, quiet)
    subprocess.run([llvm / "bin/clang++", "-x", "cuda", "gsan.cu", "-o", tmp_path / "out.ll"], check=True)

    assert (tmp_path / "out.ll").read_text() == "define void @gsan"


def test_without_a_clang_and_without_device_code_the_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"clang\+\+ was needed by this Triton and is missing"):
        wheel_parts.supply_clang(tmp_path, wanting_clang(tmp_path / "triton"), tmp_path / "wheel", quiet)


def test_headers_that_many_files_include_are_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "triton/lib").mkdir(parents=True)
    for index in range(20):
        rare = '#include "mlir/Rare.h"\n' if index == 0 else ""
        (tmp_path / f"triton/lib/{index}.cpp").write_text(f'#include "mlir/IR.h"\n{rare}')
    (tmp_path / "include/mlir").mkdir(parents=True)
    for name in ("IR.h", "Rare.h"):
        (tmp_path / "include/mlir" / name).touch()

    headers = pch.of_triton(tmp_path / "triton", tmp_path / "include")
    command = pch.launcher(tmp_path / "pch", headers)

    assert (tmp_path / "pch/prefix.h").read_text() == '#include "mlir/IR.h"\n'
    assert command[1:] == ["-I", pch.__file__, str(tmp_path / "pch")]


def test_only_llvm_headers_that_need_no_generated_one_are_precompiled(tmp_path: Path) -> None:
    names = ("llvm/ADT/SmallVector.h", "llvm/IR/Attributes.h")
    for name in names:
        header = tmp_path / "llvm/include" / name
        header.parent.mkdir(parents=True)
        header.touch()
    (tmp_path / "mlir/lib").mkdir(parents=True)
    (tmp_path / "mlir/lib/IR.cpp").write_text("".join(f'#include "{name}"\n' for name in names))

    assert pch.of_llvm(tmp_path) == ["llvm/ADT/SmallVector.h"]


COMPILER = """#!/bin/sh
echo "$*" >> {log}
case "$*" in *{failing}*) exit 1 ;; esac
while [ "$1" != -o ]; do shift; done; touch "$2"
"""


@pytest.mark.parametrize(("failing", "compiled"), [("nothing", 3), ("include-pch", 5)])
def test_a_header_is_compiled_once_and_a_file_that_fails_with_it_is_compiled_without(
    tmp_path: Path, failing: str, compiled: int
) -> None:
    compiler = tmp_path / "clang++"
    compiler.write_text(COMPILER.format(log=tmp_path / "log", failing=failing))
    compiler.chmod(0o755)
    (tmp_path / "prefix.h").touch()
    for name in ("a", "b"):
        file = tmp_path / name
        command = [str(compiler), "-Iinclude", "-std=c++17", "-c", f"{file}.cpp", "-o", f"{file}.o"]
        assert pch.main([str(tmp_path), *command]) == 0

    assert len((tmp_path / "log").read_text().splitlines()) == compiled


# ---------------------------------------------------------------- the wheel, and its source


def test_the_installed_wheel_contains_the_version_of_its_llvm() -> None:
    library_of_wheel = library.Library(
        Path(machine.installed(Path(sys.prefix))["triton_path"], "_C/libtriton.so")
    )

    assert re.fullmatch(r"[0-9a-f]{40}", library_of_wheel.llvm_commit())
    assert library_of_wheel.llvm_version().startswith(pins.read().llvm_major(installed_version()) + ".")


def installed_version() -> str:
    version: str = machine.installed(Path(sys.prefix))["triton"]
    return version


def test_a_kernel_compiles_for_sm_90_with_the_installed_wheel() -> None:
    assert "a kernel compiles for sm_90" in proofs.compiles(Path(sys.prefix))


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb: make doctor")
def test_the_source_of_a_wheel_is_compared_with_its_line_tables(built: Built, tmp_path: Path) -> None:
    installed = built.triton / "python/triton/_C/libtriton.so"
    edited = tmp_path / "triton"
    shutil.copytree(built.triton / "lib", edited / "lib")
    source = edited / proofs.COALESCE
    source.write_text("\n" + source.read_text())

    assert wheel_source.built_in(installed, built.triton) == str(built.triton)
    with pytest.raises(Problem, match="it is of another tree"):
        wheel_source.built_in(installed, edited)
