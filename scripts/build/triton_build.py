"""Build Triton in Debug from source, against the LLVM of `make llvm`, into the environment.

It is an editable install: Python imports the tree, and the same command rebuilds an edited pass. The NVIDIA
tools and headers come from the wheel of the same version. At the end it verifies that Python loads
this build.
Standard library only. Exit status: 0 built and verified, 2 failed, with the reason.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts import pins, script
from scripts.build import gdb_index, llvm_build, ninja_build, pch, proofs, recipe, wheel_parts
from scripts.build.library import Library
from scripts.build.llvm_build import Llvm
from scripts.build.recipe import Compiler
from scripts.build.toolchain import Toolchain, require_room, require_writable
from scripts.machine import GB, installed, output
from scripts.pins import Problem

say = script.speaker("triton")
CMAKE = Path(__file__).parent / "cmake"
ROOM = 12e9  # bytes: a Debug build with gcc, its objects and libtriton.so


def build(options: argparse.Namespace) -> None:
    """Build Triton and verify the result. Raises Problem with the reason if that fails."""
    tools, known = Toolchain(options.toolchain.resolve()), pins.read(options.pins)
    require_venv(options.venv)
    with tools.locked():
        llvm = llvm_build.read(tools)
        source, version = llvm_build.chosen_triton(options, tools, known)
        require_writable(source.folder)
        require_room(source.folder, ROOM, "Triton")
        compiler = recipe.compiler(options.launcher)
        nvidia = wheel_parts.nvidia(tools, options.venv, version, say)
        wheel_parts.put(nvidia, source.folder)
        wheel_parts.supply_clang(Path(llvm.folder), source.folder, nvidia, say)
        install(options, tools, source.folder, llvm, compiler)
        steps = [
            lambda: proofs.imported(options.venv, source.folder),
            lambda: proofs.same_llvm(source.folder, llvm),
            lambda: proofs.compiles(options.venv),
            lambda: proofs.stops(options.venv, source.folder),
        ]
        if options.lit:
            steps.append(lambda: proofs.lit(options.venv, source.folder, build_folder(source.folder), llvm))
        proofs.prove(steps, say)


def require_venv(venv: Path) -> None:
    if not output(proofs.python(venv), "-m", "pip", "--version"):
        raise Problem(f"{venv} is no environment with pip, one was needed", "make venv")


# ---------------------------------------------------------------- the build


def environment(
    options: argparse.Namespace, tools: Toolchain, triton: Path, llvm: Llvm, compiler: Compiler
) -> dict[str, str]:
    """The environment variables for Triton's setup.py, with only the needed ones of this process."""
    jobs = recipe.jobs(compiler, asked=options.jobs)
    arguments = cmake_arguments(llvm, compiler, launcher(tools, triton, llvm, compiler))
    return {
        **ninja_build.status_line(),
        "LLVM_SYSPATH": llvm.folder,
        "DEBUG": "1",
        "MAX_JOBS": str(jobs.compile),
        "TRITON_PARALLEL_LINK_JOBS": str(jobs.link),
        "TRITON_HOME": str(tools.root),
        # Nothing is downloaded: LLVM is ours, NVIDIA's tools are the wheel's, JSON is for Proton only.
        "TRITON_OFFLINE_BUILD": "1",
        "JSON_SYSPATH": str(tools.root),
        "TRITON_BUILD_PROTON": "OFF",
        "TRITON_APPEND_CMAKE_ARGS": " ".join(f"'{argument}'" for argument in arguments),
        "PATH": os.pathsep.join([str(options.venv.absolute() / "bin"), os.environ.get("PATH", "")]),
    }


def launcher(tools: Toolchain, triton: Path, llvm: Llvm, compiler: Compiler) -> list[str]:
    """The compiler launcher: the user's or a cache, else with clang this project's (see pch.py)."""
    if compiler.launcher or not compiler.clang:
        return compiler.launcher.split()
    headers = pch.of_triton(triton, Path(llvm.folder, "include"))
    return pch.launcher(tools.root / f"pch-{Path(llvm.folder).name}", headers)


def cmake_arguments(llvm: Llvm, compiler: Compiler, launcher: list[str]) -> list[str]:
    # Triton's own flags end in -Werror: warnings of compilers that its authors do not use would end the
    # build.
    flags = "-g -O0 -gsplit-dwarf -ggnu-pubnames -Wno-error"
    if compiler.clang and llvm.kind != "source":
        flags += " -fstandalone-debug"  # clang leaves out classes that it expects in LLVM's debug sections
    options = {
        "CMAKE_C_COMPILER": compiler.c,
        "CMAKE_CXX_COMPILER": compiler.cxx,
        "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(launcher),
        "CMAKE_C_FLAGS_DEBUG": flags,
        "CMAKE_CXX_FLAGS_DEBUG": flags,
    }
    if compiler.linker:  # GNU ld writes no index, without which gdb reads for half a minute
        link = f"-fuse-ld={compiler.linker} -Wl,--gdb-index"
        options |= dict.fromkeys((f"CMAKE_{kind}_LINKER_FLAGS" for kind in ("EXE", "MODULE", "SHARED")), link)
    if llvm.kind == "system":
        options["CMAKE_PROJECT_triton_INCLUDE"] = str(CMAKE / "link_llvm_once.cmake")
    return [f"-D{name}={value}" for name, value in options.items() if value]


def requirements(triton: Path) -> list[str]:
    """The build requirements of Triton's pyproject.toml, and lit, except for installed ones."""
    match = re.search(
        r"^requires\s*=\s*\[(.*?)\]", (triton / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S
    )
    asked = re.findall(r'"([^"]+)"', match.group(1)) if match else ["setuptools", "pybind11"]
    programs = {"cmake", "ninja"}
    rest = [
        one
        for one in asked
        if not ((name := re.split(r"[<>=~! ]", one)[0]) in programs and shutil.which(name))
    ]
    return [*rest, "wheel", "lit<23"]  # Triton's tests want a real shell, which lit 23 refuses


def install(
    options: argparse.Namespace, tools: Toolchain, triton: Path, llvm: Llvm, compiler: Compiler
) -> None:
    pip = (proofs.python(options.venv), "-m", "pip")
    done = subprocess.run([*pip, "install", "--quiet", *requirements(triton)], capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise Problem(
            f"what Triton's build needs could not be installed: {last}", "set HTTPS_PROXY or PIP_FIND_LINKS"
        )
    there = installed(options.venv)
    own = Path(there["triton_path"] or "/").is_relative_to(options.venv.absolute())
    if there["triton"] and own and not there["triton_source"]:
        say(f"removing the wheel of Triton {there['triton']}, which torch came with, from {options.venv}")
        subprocess.run(
            [*pip, "uninstall", "--quiet", "--yes", "triton", "pytorch-triton"], capture_output=True
        )
    say(f"building {triton} in Debug with {compiler}, against {llvm.folder}")
    # by a path, which Python searches before the system's packages, unlike setuptools' own finder
    editable = ("--config-settings", "editable_mode=compat", "--editable", str(triton))
    command = (*pip, "install", "--verbose", "--no-build-isolation", "--no-deps", *editable)
    log = triton / "build/debug-triton.log"
    log.parent.mkdir(exist_ok=True)
    took = ninja_build.watch(command, log, 0, say, environment(options, tools, triton, llvm, compiler))
    library = triton / "python/triton/_C/libtriton.so"
    folder = llvm_build.size(build_folder(triton))
    say(f"built: {took}; libtriton.so {library.stat().st_size / GB:.2f} GB, all of it {folder / GB:.1f} GB")
    for path in (library, *(build_folder(triton) / "bin").glob("triton-*")):
        gdb_index.name_types_once(path)
    if ".gdb_index" not in Library(library).names():
        say("it has no index for gdb, whose first load takes half a minute: install lld or mold")


def build_folder(triton: Path) -> Path:
    """The folder in which setup.py last ran CMake. Raises Problem if there is none."""
    caches = sorted(triton.glob("build/cmake*/CMakeCache.txt"), key=lambda file: file.stat().st_mtime)
    if not caches:
        raise Problem(f"{triton} was not built: build/cmake… is missing", "make triton")
    return caches[-1].parent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    llvm_build.add_options(parser)
    parser.add_argument("--lit", action="store_true", help="run Triton's own lit tests, too")
    options = parser.parse_args()
    return script.run("triton", lambda: build(options))


if __name__ == "__main__":
    sys.exit(main())
