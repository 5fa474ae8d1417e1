"""Configure LLVM for debugging Triton: options, targets to build, and their cost.

Little of LLVM is needed: what Triton's CMake files link and what its tests run. Both are read from Triton's
tree and compared with what this LLVM can build, so no list here goes out of date.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.build.ninja_build import duration
from scripts.machine import GB, cores, memory, output
from scripts.pins import Problem

PROFILES = ("Debug", "RelWithDebInfo", "line-tables")
OLDEST_CLANG = 16  # for Triton's device code: --gcc-install-dir


@dataclass(frozen=True)
class Compiler:
    c: str
    cxx: str
    clang: int  # major version; 0: it is gcc
    linker: str  # "lld", "mold", or "" for the system's own
    launcher: str  # "ccache", "sccache", "distcc", …; "" for none

    @property
    def name(self) -> str:
        return "clang" if self.clang else "gcc"

    def __str__(self) -> str:
        launcher = f", through {self.launcher}" if self.launcher else ""
        return f"{self.cxx}, linked by {self.linker or 'ld'}{launcher}"


def compiler(launcher: str = "") -> Compiler:
    """The compiler to build with: CC and CXX where they are set, else the newest clang, else gcc.

    launcher -- the compiler launcher; empty: ccache or sccache if one is installed

    Raises Problem if there is no compiler, or if the requested launcher is missing.
    """
    if launcher and not shutil.which(launcher.split()[0]):
        raise Problem(
            f"the compiler launcher {launcher} was not found", "install it, or leave COMPILER_LAUNCHER out"
        )
    c, cxx = os.environ.get("CC", ""), os.environ.get("CXX", "")
    if not (c and cxx):
        c, cxx = next(((c, cxx) for c, cxx in pairs() if shutil.which(c) and shutil.which(cxx)), ("", ""))
    if not cxx or not shutil.which(cxx):
        raise Problem(f"no C++ compiler was found ({cxx or 'clang++, g++'}), one was needed", "make doctor")
    version = re.search(r"clang version (\d+)", output(cxx, "--version"))
    chosen = launcher or next(filter(shutil.which, ("ccache", "sccache")), "")
    return Compiler(c, cxx, int(version.group(1)) if version else 0, linker(cxx), chosen)


def pairs() -> list[tuple[str, str]]:
    """C and C++ compilers by preference; Debian installs a newer clang next to the default, under its
    number."""
    versions = {
        int(m.group(1)) for name in executables("clang++-") if (m := re.fullmatch(r"clang\+\+-(\d+)", name))
    }
    newest = [(f"clang-{number}", f"clang++-{number}") for number in sorted(versions, reverse=True)]
    return [*newest, ("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")]


def executables(prefix: str) -> set[str]:
    folders = (Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    return {path.name for folder in folders if folder.is_dir() for path in folder.glob(f"{prefix}*")}


def linker(cxx: str) -> str:
    # A compiler looks in its own folder first, where lld often is under no other name.
    for name, program in (("lld", "ld.lld"), ("mold", "ld.mold")):
        if shutil.which(output(cxx, f"-print-prog-name={program}") or program):
            return name
    return ""


# ---------------------------------------------------------------- how much at a time


@dataclass(frozen=True)
class Jobs:
    compile: int
    link: int


def jobs(compiler: Compiler, *, asked: int = 0, cpus: int = 0, bytes_held: int = 0) -> Jobs:
    """The numbers of compiles and links that fit into memory and cores at once.

    asked            -- parallel compiles that the user requests, for example of a distributed build
    cpus, bytes_held -- cores and memory to share out; 0: this machine's
    """
    cpus, bytes_held = cpus or cores(), bytes_held or memory()
    each, link = (1.2 * GB, 3 * GB) if compiler.clang else (1.6 * GB, 4 * GB)
    if not compiler.linker:
        link *= 3  # GNU ld holds all debug sections
    compiles = asked or max(1, min(cpus, int(bytes_held // each)))
    return Jobs(compiles, max(1, min(compiles, cpus, int(bytes_held // link))))


@dataclass(frozen=True)
class Estimate:
    steps: int
    cpu: float  # seconds
    wall: float  # seconds
    disk: float  # bytes
    memory: float  # bytes

    def __str__(self) -> str:
        return (
            f"{self.steps} steps: about {duration(self.cpu)} of CPU time, {duration(self.wall)} by the clock,"
            f" {self.disk / GB:.1f} GB of disk, {self.memory / GB:.0f} GB of memory"
        )


# Costs of one C++ file of LLVM 22, in seconds of one core and bytes: with clang 16 in Debug from a whole
# build on 64 cores, the others by their ratio to it for six files (gcc 12, clang 23). Clang 23 on 2 cores
# took half the time and two thirds of the disk: tests/benchmarks/test_build.py samples it.
PER_COMPILE = {
    ("clang", "Debug"): (6.9, 5.1e6),
    ("clang", "RelWithDebInfo"): (13.6, 3.5e6),
    ("clang", "line-tables"): (9.3, 1.4e6),
    ("gcc", "Debug"): (9.4, 7.2e6),
    ("gcc", "RelWithDebInfo"): (19.0, 7.7e6),
    ("gcc", "line-tables"): (11.1, 2.3e6),
}


def estimate(steps: Sequence[str], compiler: Compiler, profile: str, jobs: Jobs) -> Estimate:
    """Estimate what the steps of a dry run will take, by the number of files to compile."""
    compiles = sum(" object " in step for step in steps)
    seconds, size = PER_COMPILE[compiler.name, profile]
    cpu = compiles * seconds
    most = jobs.compile * (0.6 if compiler.clang else 0.9) * GB + 1 * GB
    return Estimate(len(steps), cpu, cpu / jobs.compile, compiles * size, most)


# ---------------------------------------------------------------- what is built


def arguments(
    compiler: Compiler, profile: str, jobs: Jobs, launcher: str, *, clang: bool, commit: str
) -> list[str]:
    """CMake's arguments for an LLVM whose frames can be read in a debugger.

    launcher -- the launcher of C++ compiles; "": none
    clang    -- whether Triton needs a clang++ that this machine does not have
    commit   -- embedded in the libraries, so that libtriton.so reports its LLVM
    """
    options = {
        "LLVM_ENABLE_PROJECTS": "mlir;lld;clang" if clang else "mlir;lld",
        "LLVM_TARGETS_TO_BUILD": "Native;NVPTX;AMDGPU",
        "LLVM_ENABLE_ASSERTIONS": "ON",
        "LLVM_OPTIMIZED_TABLEGEN": "ON",  # an unoptimised one runs for minutes
        # This one runs once, unoptimised: it needs LLVM's Core and MLIR's parser, which are built anyway.
        "MLIR_LINALG_ODS_YAML_GEN": "mlir-linalg-ods-yaml-gen",
        "LLVM_PARALLEL_COMPILE_JOBS": str(jobs.compile),
        "LLVM_PARALLEL_LINK_JOBS": str(jobs.link),
        "LLVM_USE_LINKER": compiler.linker,
        "CMAKE_C_COMPILER": compiler.c,
        "CMAKE_CXX_COMPILER": compiler.cxx,
        "CMAKE_C_COMPILER_LAUNCHER": launcher if compiler.launcher else "",
        "CMAKE_CXX_COMPILER_LAUNCHER": launcher,
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        # Libraries that not every machine has, and that no part of Triton uses.
        **dict.fromkeys(("LLVM_ENABLE_LIBXML2", "LLVM_ENABLE_ZSTD", "LLVM_ENABLE_LIBEDIT"), "OFF"),
        **dict.fromkeys(
            (f"LLVM_INCLUDE_{part}" for part in ("TESTS", "EXAMPLES", "BENCHMARKS", "DOCS")), "OFF"
        ),
        "MLIR_INCLUDE_TESTS": "OFF",
        **symbols(compiler, profile),
    }
    if commit:
        options["LLVM_FORCE_VC_REVISION"] = commit
        options["LLVM_FORCE_VC_REPOSITORY"] = "llvm-project"
    return [f"-D{name}={value}" for name, value in options.items() if value]


def symbols(compiler: Compiler, profile: str) -> dict[str, str]:
    """The CMake arguments of a profile: more debug information costs time and disk."""
    if profile == "line-tables":  # backtraces and stepping, no variables
        lines = "-gline-tables-only" if compiler.clang else "-g1"
        flags = dict.fromkeys(("CMAKE_C_FLAGS_RELEASE", "CMAKE_CXX_FLAGS_RELEASE"), f"-O1 {lines}")
        return {"CMAKE_BUILD_TYPE": "Release", **flags}
    # Debug sections stay next to the objects: links and libraries are a tenth, and gdb finds them there.
    return {"CMAKE_BUILD_TYPE": profile, "LLVM_USE_SPLIT_DWARF": "ON"}


WORD = re.compile(r"\b(?:MLIR|LLVM|lld)[A-Z]\w+")
TOOL = re.compile(r"(?:RUN:|\||\bnot\b)\s*([\w-]+)")
HEADERS = ("mlir-headers", "mlir-tblgen", "FileCheck")  # files that Triton's own build reads and runs


def linked(triton: Path) -> set[str]:
    """Identifiers in Triton's CMake files that may be libraries of LLVM."""
    folders = [triton / name for name in ("CMakeLists.txt", "bin", "lib", "test", "third_party", "python")]
    files = [
        file
        for folder in folders
        for file in ([folder] if folder.is_file() else folder.rglob("CMakeLists.txt"))
    ]
    lines = (
        re.sub("#.*", "", line) for file in files for line in file.read_text(encoding="utf-8").splitlines()
    )
    return {word for line in lines for word in WORD.findall(line)}


def run_by_tests(triton: Path) -> set[str]:
    """First words of the commands in the RUN lines of Triton's tests."""
    files = [file for end in ("mlir", "ll") for file in (triton / "test").rglob(f"*.{end}")]
    lines = (
        line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
    )
    return {tool for line in lines if "RUN:" in line for tool in TOOL.findall(line)}


def targets(triton: Path, buildable: set[str], *, clang: bool) -> list[str]:
    """The targets of LLVM to build. Raises Problem if Triton's tree links nothing that this LLVM has."""
    libraries = linked(triton) & buildable
    if not libraries:
        raise Problem(
            f"{triton} links no library of this LLVM", "name the roots of both trees: TRITON_SRC, LLVM_SRC"
        )
    tools = (run_by_tests(triton) | set(HEADERS)) & buildable
    return sorted(libraries | tools | ({"clang"} if clang else set()))


def wants_clang(triton: Path) -> bool:
    """True if this Triton looks for a clang++ in the folder of LLVM, to compile device code of its own (from
    3.7)."""
    files = (triton / "third_party/nvidia").rglob("CMakeLists.txt")
    return any(
        re.search(r"find_program\([^)]*\bclang\+\+", file.read_text(encoding="utf-8")) for file in files
    )
