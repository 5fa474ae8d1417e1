"""Check whether `make llvm triton` would work on this machine, and estimate its cost.

None of this is needed to run cases or to stop in Triton's own passes: the wheel is sufficient. Each check
names the features that are missing without it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from scripts.build import recipe
from scripts.build.ninja_build import duration
from scripts.check import Check
from scripts.machine import GB, free, install, memory, output
from scripts.pins import Problem

COMPILES = 2942  # C++ files of LLVM 22 that Triton's libraries, tools and tests need, by a dry run of ninja
NO_BUILD = "`make llvm triton` cannot build; stops in Triton's own passes work with the wheel"


def version(program: str) -> tuple[int, ...]:
    match = re.search(r"(\d+)\.(\d+)", output(program, "--version"))
    return tuple(int(number) for number in match.groups()) if match else ()


def check_cmake(_venv: Path) -> Check:
    needed, present = "cmake 3.20 or later, to build LLVM and Triton", version("cmake")
    if present >= (3, 20):
        return Check("cmake", output("cmake", "--version").partition("\n")[0], needed)
    name = ".".join(map(str, present)) or "none"
    return Check("cmake", name, needed, "warning", install("cmake", "cmake", "cmake"), NO_BUILD)


def check_ninja(_venv: Path) -> Check:
    needed, present = "ninja, to build LLVM and Triton", output("ninja", "--version")
    if present:
        return Check("ninja", present, needed)
    return Check("ninja", "none", needed, "warning", install("ninja-build", "ninja-build", "ninja"), NO_BUILD)


def check_git(_venv: Path) -> Check:
    needed, present = "git 2.25 or later, to fetch sources", version("git")
    if present >= (2, 25):
        return Check("git", output("git", "--version"), needed)
    cost = "no sources are fetched; folders and archives can be given: TRITON_SRC=…, LLVM_SRC=…"
    return Check("git", "none", needed, "warning", install("git", "git", "git"), cost)


def newest_clang() -> str:
    """The package of Debian with the newest clang; Debian 12's `clang` is older than what is needed."""
    packages = output("apt-cache", "pkgnames", "clang-").split()
    versions = [int(name[1]) for one in packages if (name := re.fullmatch(r"clang-(\d+)", one))]
    newest = max(versions, default=0)
    return f"clang-{newest}" if newest >= recipe.OLDEST_CLANG else "clang"


def check_clang(_venv: Path) -> Check:
    needed = f"clang {recipe.OLDEST_CLANG} or later, to build with"
    cost = "building with gcc takes 1.4 times the time and the disk"
    remedy = install(newest_clang(), "clang", "clangxx")
    try:
        present = recipe.compiler()
    except Problem as problem:
        return Check("clang", str(problem), needed, "warning", remedy, NO_BUILD)
    if present.clang >= recipe.OLDEST_CLANG:
        return Check("clang", f"{present.cxx}, version {present.clang}", needed)
    return Check("clang", f"none; {present.cxx} builds", needed, "warning", remedy, cost)


def check_linker(_venv: Path) -> Check:
    needed = "lld or mold, to link with an index for gdb"
    try:
        present = recipe.compiler().linker
    except Problem:
        present = ""
    if present:
        return Check("linker", present, needed)
    cost = "gdb takes half a minute, not seconds, to load a built Triton; links take three times the memory"
    return Check("linker", "neither lld nor mold", needed, "warning", install("lld", "lld", "lld"), cost)


def check_zlib(_venv: Path) -> Check:
    needed = "zlib.h: libtriton.so is linked with zlib"
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), "")
    if compiler and output(compiler, "-E", "-include", "zlib.h", "-x", "c", "/dev/null"):
        return Check("zlib", "zlib.h", needed)
    remedy = install("zlib1g-dev", "zlib-devel", "zlib")
    return Check("zlib", "none", needed, "warning", remedy, NO_BUILD)


def check_cache(_venv: Path) -> Check:
    present = [name for name in ("ccache", "sccache") if shutil.which(name)]
    needed = "ccache or sccache, to build anything a second time in minutes"
    if present:
        return Check("cache", ", ".join(present), needed)
    remedy = install("ccache", "ccache", "ccache")
    return Check(
        "cache",
        "neither ccache nor sccache: each build of Triton compiles everything anew",
        needed,
        "ok",
        remedy,
        "another profile or commit compiles everything anew",
    )


def check_build(venv: Path) -> Check:
    """Compare the resources that building LLVM needs with those of this machine."""
    try:
        compiler = recipe.compiler()
    except Problem as problem:
        return Check("build", str(problem), "a compiler", "warning", problem.remedy, NO_BUILD)
    jobs = recipe.jobs(compiler)
    estimate = recipe.estimate([" object "] * COMPILES, compiler, "Debug", jobs)
    room, held = free(venv), memory()
    present = f"{room / GB:.0f} GB of disk, {held / GB:.0f} GB of memory; {jobs.compile} compiles at a time"
    needed = (
        f"{estimate.disk / GB:.0f} GB of disk and 3 GB of memory for LLVM in Debug,"
        f" about {duration(estimate.wall)} here"
    )
    if room >= estimate.disk and held >= 3 * GB:
        return Check("build", f"{present}: {duration(estimate.wall)}", needed)
    remedy = (
        "free some, make TOOLCHAIN=/elsewhere, or take a smaller one: LLVM=prebuilt, LLVM_PROFILE=line-tables"
    )
    return Check("build", present, needed, "warning", remedy, NO_BUILD)


CHECKS: tuple[Callable[[Path], Check], ...] = (
    check_cmake,
    check_ninja,
    check_git,
    check_clang,
    check_linker,
    check_zlib,
    check_cache,
    check_build,
)
