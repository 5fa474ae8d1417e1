"""What building LLVM for Triton takes, as a ratio to building all of LLVM and MLIR as one would by hand.

Steps are counted by dry runs of ninja; seconds and bytes are of a sample of files that both builds compile,
one after the other on this machine. Needs trees: LLVM_SRC=FOLDER TRITON_SRC=FOLDER; SAMPLE=N files (12).
TABLEGEN_DIR, a folder with llvm-tblgen and mlir-tblgen of the same version, saves building them first.
"""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest
from standin import load

llvm_build, ninja_build, proof, recipe, sources = map(
    load, ("llvm_build", "ninja_build", "proof", "recipe", "sources")
)

BY_HAND = (  # what was recommended before: all targets, the default compiler, no split debug sections
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DLLVM_ENABLE_ASSERTIONS=ON",
    "-DLLVM_ENABLE_PROJECTS=mlir;llvm",
    "-DLLVM_TARGETS_TO_BUILD=host;NVPTX;AMDGPU",
)
TOOLS = {"LLVM": "llvm-tblgen", "LLVM_HEADERS": "llvm-tblgen", "MLIR": "mlir-tblgen"}


def cpu_time(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@dataclass(frozen=True)
class Build:
    folder: Path
    steps: list[str]

    def compiles(self) -> list[str]:
        return [step.rpartition(" ")[2] for step in self.steps if " object " in step]

    def executables(self) -> int:
        return sum(" executable " in step for step in self.steps)

    def sample(self, objects: list[str]) -> tuple[float, float]:
        """Mean seconds of CPU time and bytes of a compile."""
        taken = [self.compile(one) for one in objects]
        return mean(seconds for seconds, _ in taken), mean(size for _, size in taken)

    def compile(self, name: str) -> tuple[float, int]:
        subprocess.run(["ninja", "-C", self.folder, name], check=True, stdout=subprocess.DEVNULL)
        asked = ["ninja", "-C", self.folder, "-t", "commands", "-s", name]
        command = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        seconds = cpu_time(shlex.split(command), self.folder)
        written = (self.folder / name, (self.folder / name).with_suffix(".dwo"))
        size = sum(path.stat().st_size for path in written if path.exists())
        return seconds, size


def configured(source: Path, folder: Path, arguments: list[str], targets: list[str] | None) -> Build:
    """A configured build folder, and the steps to its targets; None: those that Triton needs."""
    llvm_build.configure(sources.Source(source, ""), folder, arguments)
    if targets is None:
        triton = Path(os.environ["TRITON_SRC"])
        targets = recipe.targets(triton, ninja_build.known_targets(folder), clang=False)
    steps = ninja_build.outstanding(folder, targets)
    if tools := os.environ.get("TABLEGEN_DIR"):
        given = [f"-D{name}_TABLEGEN={tools}/{tool}" for name, tool in TOOLS.items()]
        llvm_build.configure(sources.Source(source, ""), folder, [*arguments, *given])
    return Build(folder, steps)


@pytest.mark.skipif("LLVM_SRC" not in os.environ, reason="needs LLVM_SRC=FOLDER TRITON_SRC=FOLDER")
@pytest.mark.timeout(0)
def test_cpu_time_and_disk_against_all_of_llvm_by_hand(tmp_path: Path) -> None:
    source, compiler = Path(os.environ["LLVM_SRC"]), recipe.compiler()
    wanted = recipe.arguments(compiler, "Debug", recipe.jobs(compiler), clang=False, commit="")
    ours = configured(source, tmp_path / "ours", wanted, None)
    by_hand = configured(source, tmp_path / "by-hand", list(BY_HAND), [])
    common = [one for one in ours.compiles() if one in set(by_hand.compiles())]
    objects = common[:: max(1, len(common) // int(os.environ.get("SAMPLE", "12")))]

    (our_cpu, our_size), (hand_cpu, hand_size) = ours.sample(objects), by_hand.sample(objects)

    show("ours", ours, our_cpu, our_size)
    show("by hand", by_hand, hand_cpu, hand_size)
    share = len(ours.compiles()) / len(by_hand.compiles())
    print(f"compiles: {share * our_cpu / hand_cpu:.2f} of the CPU time,", end=" ")
    print(f"{share * our_size / hand_size:.2f} of the objects' bytes")
    assert ours.compiles()


def show(name: str, build: Build, cpu: float, size: float) -> None:
    number = len(build.compiles())
    print(
        f"{name:8} {len(build.steps)} steps, {number} compiles, {build.executables()} executables;", end=" "
    )
    print(
        f"one {cpu:.1f} s, {size / 1e6:.2f} MB; all {number * cpu / 3600:.1f} h, {number * size / 1e9:.1f} GB"
    )


@pytest.mark.skipif(
    "LIBTRITON" not in os.environ, reason="needs LIBTRITON=FILE, with an index, and TRITON_SRC"
)
@pytest.mark.timeout(0)
def test_gdb_to_its_first_breakpoint_with_the_index_against_without(tmp_path: Path) -> None:
    _, line = proof.lines_of_pass(Path(os.environ["TRITON_SRC"], proof.COALESCE))
    indexed, bare = Path(os.environ["LIBTRITON"]), tmp_path / "libtriton.so"
    subprocess.run(["objcopy", "--remove-section=.gdb_index", indexed, bare], check=True)
    gdb = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", f"break Coalesce.cpp:{line}"]

    with_index, without = (cpu_time([*gdb, str(path)], tmp_path) for path in (indexed, bare))

    print(f"gdb: {with_index:.1f} s of CPU time with the index, {without:.1f} s without:", end=" ")
    print(f"{with_index / without:.2f}")
    assert bare.stat().st_size < indexed.stat().st_size
