"""Build the parts of LLVM, MLIR and lld that Triton links, with debug symbols, at Triton's commit.

`LLVM=source` builds it (hours on a laptop, minutes on a large machine), `LLVM=prebuilt` takes Triton's own
archive and `LLVM=system` the distribution's. The same command resumes an interrupted build.
Standard library only. Exit status: 0 the LLVM is available, 2 it is not, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts import pins, script
from scripts.build import llvm_system, ninja_build, pch, recipe, sources, wheel_parts
from scripts.build.recipe import PROFILES, Compiler, Jobs
from scripts.build.sources import Source
from scripts.build.toolchain import Toolchain, require_room
from scripts.machine import GB, gpus, memory, output
from scripts.pins import Pins, Problem

say = script.speaker("llvm")
LEAST_MEMORY = 3 * GB  # one file of MLIR takes 2.7


@dataclass(frozen=True)
class Llvm:
    """The LLVM against which `make triton` builds."""

    folder: str
    commit: str  # as its libraries name it, see revision(); "": a distribution's
    kind: str  # source, prebuilt or system
    profile: str = ""


def record(tools: Toolchain) -> Path:
    return tools.root / "llvm.json"


def last(tools: Toolchain) -> Llvm | None:
    """The LLVM of the last `make llvm`; None if there is none, or if its folder is gone."""
    if not record(tools).exists():
        return None
    built = Llvm(**json.loads(record(tools).read_text(encoding="utf-8")))
    return built if Path(built.folder).exists() else None


def read(tools: Toolchain) -> Llvm:
    """The LLVM of the last `make llvm`; raises Problem if there is none."""
    if built := last(tools):
        return built
    raise Problem(f"no LLVM is ready in {tools.root}", "make llvm")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that LLVM's and Triton's build share: sources, folders, compilers."""
    parser.add_argument(
        "--toolchain", type=Path, default=Path("toolchain"), help="folder of sources and builds"
    )
    parser.add_argument(
        "--venv", type=Path, default=Path(".venv"), help="the environment with Triton's wheel"
    )
    parser.add_argument("--pins", type=Path, default=pins.PINS, help="another list of versions")
    parser.add_argument("--torch", default="", help="another version than the default of pins.toml")
    parser.add_argument("--triton", default="", help="version of Triton; default: the one that fits torch")
    parser.add_argument(
        "--triton-src", default="", help="a folder or an archive of Triton instead of its tag"
    )
    parser.add_argument("--launcher", default="", help="run compiles through it: ccache, distcc, …")
    parser.add_argument("--jobs", type=int, default=0, help="maximum number of parallel compiles")


def chosen_triton(options: argparse.Namespace, tools: Toolchain, known: Pins) -> tuple[Source, str]:
    """Triton's tree and its version."""
    here = (sys.version_info[0], sys.version_info[1])
    version = options.triton
    if not options.triton_src:
        version = pins.pick(
            known, torch=options.torch, triton=options.triton, gpu=bool(gpus()), python=here
        ).triton
    source = sources.triton(tools, known, version, options.triton_src, say)
    return source, declared_version(source.folder) or version


def declared_version(triton: Path) -> str:
    match = re.search(r"__version__ = ['\"]([\d.]+)", (triton / "python/triton/__init__.py").read_text())
    return match.group(1) if match else ""


def ready(options: argparse.Namespace) -> Llvm:
    """Build or fetch LLVM by the options; an empty option keeps the last choice.

    Raises Problem with the reason if that fails.
    """
    tools, known = Toolchain(options.toolchain.resolve()), pins.read(options.pins)
    with tools.locked():
        before = last(tools)
        kind = options.llvm or (before.kind if before else "source")
        profile = options.profile or (before.profile if before else "") or "Debug"
        if kind == "source":
            require_machine()
            recipe.compiler(options.launcher)
        triton, version = chosen_triton(options, tools, known)
        if kind == "system":
            there = llvm_system.of_distribution(known.llvm_major(version), options.llvm_src, say)
            llvm = Llvm(str(there.prefix), "", kind)
        elif kind == "prebuilt":
            pin = sources.llvm_pin(triton.folder)
            llvm = Llvm(str(llvm_system.of_triton(tools, triton.folder, pin, say)), pin.commit, kind)
        else:
            llvm = from_source(options, tools, known, triton.folder, version, profile)
        record(tools).write_text(json.dumps(asdict(llvm)) + "\n", encoding="utf-8")
    say(f"{llvm.folder} is ready, {llvm.kind} {llvm.commit[:12]}".rstrip())
    return llvm


def require_machine() -> None:
    """Raise Problem for the first requirement of a build of LLVM that this machine lacks."""
    require_memory(memory())
    for program in ("cmake", "ninja"):
        if not shutil.which(program):
            raise Problem(f"{program} was not found, it was needed to build LLVM", "make doctor")


def from_source(
    options: argparse.Namespace, tools: Toolchain, known: Pins, triton: Path, version: str, profile: str
) -> Llvm:
    compiler = recipe.compiler(options.launcher)
    wanted = recipe.wants_clang(triton)
    clangxx = system_clang() if wanted else ""
    clang = wanted and not clangxx and not wheel_parts.has_device_code(tools, options.venv, version)
    if clang:
        say(f"clang is built, too: this Triton runs clang++, and none from {recipe.OLDEST_CLANG} on is here")
    source = sources.llvm(tools, known, sources.llvm_pin(triton), options.llvm_src, say, clang=clang)
    jobs = recipe.jobs(compiler, asked=options.jobs)
    build = tools.root / folder_name(source, compiler, profile)
    say(f"{profile} with {compiler}; {jobs.compile} compiles and {jobs.link} links at a time")
    commit = revision(source, build)
    through = launcher(source.folder, build, compiler)
    configure(source, build, recipe.arguments(compiler, profile, jobs, through, clang=clang, commit=commit))
    targets = recipe.targets(triton, ninja_build.known_targets(build), clang=clang)
    compile_all(build, targets, compiler, profile, jobs)
    if clangxx:
        link(build / "bin/clang++", Path(clangxx))
    return Llvm(str(build), commit, "source", profile)


def launcher(source: Path, build: Path, compiler: Compiler) -> str:
    """The compiler launcher for C++: the user's or a cache, else with clang this project's (see pch.py).

    One word, because LLVM's CMake files pass it unquoted through a shell to the build of TableGen.
    """
    words = compiler.launcher.split()
    if not words and compiler.clang:
        words = pch.launcher(build / "pch", pch.of_llvm(source))
    if len(words) < 2:
        return "".join(words)
    program = build / "launcher.sh"
    build.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def require_memory(held: int) -> None:
    """Raise Problem if the memory, in bytes, is too small for every build."""
    if held < LEAST_MEMORY:
        shortage = f"{held / GB:.1f} GB of memory were found, {LEAST_MEMORY / GB:.0f} GB were needed"
        raise Problem(f"{shortage} for MLIR's largest file", "build elsewhere, or make LLVM=prebuilt llvm")


def system_clang() -> str:
    """Path of a clang++ that compiles Triton's device code; empty: none is new enough."""
    for _, cxx in recipe.pairs():
        version = re.search(r"clang version (\d+)", output(cxx, "--version"))
        if version and int(version.group(1)) >= recipe.OLDEST_CLANG:
            return str(Path(shutil.which(cxx) or cxx).resolve())
    return ""


def folder_name(source: Source, compiler: Compiler, profile: str) -> str:
    """The name of a build folder, one for each source, compiler and profile."""
    name = source.commit[:10] or hashlib.sha256(str(source.folder).encode()).hexdigest()[:10]
    if source.given:  # CMake would refuse another source folder
        name += "-" + hashlib.sha256(str(source.folder).encode()).hexdigest()[:4]
    return f"llvm-{name}-{profile}-{Path(compiler.cxx).name}"


def revision(source: Source, build: Path) -> str:
    """The revision that the libraries report: the source's commit, or a hash of this folder if there is none.

    It distinguishes libtriton.so from one that links another LLVM.
    """
    return source.commit or hashlib.sha1(str(build).encode()).hexdigest()


def configure(source: Source, build: Path, arguments: list[str]) -> None:
    """Run CMake, unless the last run had the same arguments. Raises Problem with its first error."""
    require_room(build, 1e9, "configuring LLVM")
    done = build / "configured.json"
    if done.exists() and json.loads(done.read_text(encoding="utf-8")) == arguments:
        return
    build.mkdir(parents=True, exist_ok=True)
    command = ["cmake", "-G", "Ninja", "-S", str(source.folder / "llvm"), "-B", str(build), *arguments]
    say(f"configuring in {build}")
    ran = subprocess.run(command, capture_output=True, text=True)
    (build / "configure.log").write_text(ran.stdout + ran.stderr, encoding="utf-8")
    if ran.returncode:
        error = first_error(ran.stderr) or ran.stderr.strip()[-500:]
        raise Problem(
            f"LLVM could not be configured: {error}", f"make doctor; the whole log is {build}/configure.log"
        )
    done.write_text(json.dumps(arguments), encoding="utf-8")


def first_error(wrote: str) -> str:
    """CMake's first error, on one line."""
    match = re.search(r"CMake Error[^\n]*\n(.*?)\n\n", wrote + "\n\n", re.S)
    return " ".join(match.group(1).split()) if match else ""


def compile_all(build: Path, targets: list[str], compiler: Compiler, profile: str, jobs: Jobs) -> None:
    steps = ninja_build.outstanding(build, targets)
    if not steps:
        say("nothing is left to build")
        return
    estimate = recipe.estimate(steps, compiler, profile, jobs)
    say(str(estimate))
    require_room(build, estimate.disk, "LLVM")
    took = ninja_build.run(build, targets, jobs.compile, say)
    say(f"built: {took}, {size(build) / GB:.1f} GB of disk")


def size(folder: Path) -> int:
    """Bytes on disk of a folder."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())


def link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--llvm", choices=("", "source", "prebuilt", "system"), default="")
    parser.add_argument(
        "--llvm-src", default="", help="a folder or an archive of LLVM instead of Triton's commit"
    )
    parser.add_argument("--profile", choices=("", *PROFILES), default="", help="how much a debugger can show")
    options = parser.parse_args()
    return script.run("llvm", lambda: ready(options))


if __name__ == "__main__":
    sys.exit(main())
