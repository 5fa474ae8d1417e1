"""What building LLVM for Triton takes, as a ratio to a plain build of all of LLVM and MLIR.

Steps are counted by dry runs of ninja. Seconds and bytes are measured on files that both builds compile and
on one program that both link, in one run on this machine. A library holds its objects a second time. Every
program is assumed to hold the same share of its objects' bytes as the measured one.

Generated files take TableGen a minute or no time, so all of them are made here, with the optimised TableGen
of this project's build. The plain build runs an unoptimised TableGen: some of its runs are timed, the others
are estimated from the ratio of both. Files that only the plain build's compiler needs are in no sum.

Needs trees: LLVM_SRC=FOLDER TRITON_SRC=FOLDER, and ninja 1.11; SAMPLE=N files (12). BY_HAND: further
arguments of CMake for the plain build. An hour on 2 cores.
For gdb: VENV=FOLDER TRITON_SRC=FOLDER as `make triton` left them; GDB=PROGRAM.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import pytest
from commands import ROOT, script_module

llvm_build, machine, ninja_build, proofs, recipe, sources = map(
    script_module,
    ("build.llvm_build", "machine", "build.ninja_build", "build.proofs", "build.recipe", "build.sources"),
)

BY_HAND = (  # what was recommended before: all targets, the default compiler, no split debug sections
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DLLVM_ENABLE_ASSERTIONS=ON",
    "-DLLVM_ENABLE_PROJECTS=mlir;llvm",
    "-DLLVM_TARGETS_TO_BUILD=host;NVPTX;AMDGPU",
)
PROGRAM = "bin/FileCheck"  # which both link
TABLEGEN = {
    "LLVM_TABLEGEN": "llvm-tblgen",
    "LLVM_HEADERS_TABLEGEN": "llvm-tblgen",
    "MLIR_TABLEGEN": "mlir-tblgen",
}
TIMED = """\
#!/bin/sh
"$@"
status=$?
times >> "$0.${1##*/}.log"
exit $status
"""  # the shell's and, in the second line, its children's: user and system time


def cpu_time(command: str, folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@dataclass(frozen=True)
class Sample:
    """Means of some compiles, and one link as a ratio to the bytes of the linked objects."""

    compile: float  # seconds of CPU time
    object: float  # bytes, with its debug sections
    apart: float  # bytes of the debug sections in its .dwo file
    link: float  # seconds of CPU time a byte
    linked: float  # bytes a byte


@dataclass(frozen=True)
class Total:
    cpu: float
    disk: float


@dataclass(frozen=True)
class Build:
    folder: Path
    steps: list[str]

    def compiles(self) -> list[str]:
        return [step.rpartition(" ")[2] for step in self.steps if " object " in step]

    def executables(self) -> list[str]:
        return [step.rpartition(" ")[2] for step in self.steps if " executable " in step]

    def ninja(self, *words: str) -> str:
        return str(machine.output("ninja", "-C", str(self.folder), *words))

    def generated(self) -> list[str]:
        """The files for the compiler that programs of this build write."""
        custom = set(self.ninja("-t", "targets", "rule", "CUSTOM_COMMAND").split())
        made = self.inputs(custom.intersection(self.ninja("-t", "inputs", *self.compiles()).split()))
        return [name for name, own in made.items() if any("bin/" in one for one in own)]

    def make(self, names: Iterable[str]) -> None:
        subprocess.run(["ninja", "-C", self.folder, *names], check=True, stdout=subprocess.DEVNULL)

    def ran(self, program: str) -> float:
        """Seconds of CPU time that programs whose names end so took in this build, with those below them."""
        logs = self.folder.glob(f"timed.sh.*{program}.log")
        children = "\n".join(line for log in logs for line in log.read_text().splitlines()[1::2])
        return sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", children))

    def sample(self, objects: list[str]) -> Sample:
        self.make([*objects, PROGRAM])
        seconds = mean(self.step_time(name) for name in objects)
        apart = mean(size((self.folder / name).with_suffix(".dwo")) for name in objects)
        link = self.step_time(PROGRAM)
        linked_objects = sum(size(self.folder / name) for name in self.linked_objects([PROGRAM]))
        linked = size(self.folder / PROGRAM) / linked_objects
        return Sample(
            seconds, mean(size(self.folder / n) for n in objects), apart, link / linked_objects, linked
        )

    def step_time(self, name: str) -> float:
        """Seconds of CPU time of the step that makes a file, with its inputs already made."""
        return cpu_time(self.ninja("-t", "commands", "-s", name).splitlines()[-1], self.folder)

    def inputs(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The inputs of each of some files, without order-only dependencies."""
        inputs: dict[str, list[str]] = {}
        own: list[str] = []
        for line in self.ninja("-t", "query", *names).splitlines():
            if not line.startswith(" "):
                own = inputs[line.removesuffix(":")] = []
            elif line.startswith("  outputs:"):
                own = []
            elif line.startswith("    ") and not line.startswith("    ||"):
                own.append(line.strip(" |"))
        return inputs

    def linked_objects(self, programs: Iterable[str]) -> list[str]:
        """The objects that programs are linked from, through libraries too, once for each program."""
        made = list(self.inputs(programs).values())
        libraries = {name for one in made for name in one if name.endswith(".a")}
        members = self.inputs(sorted(libraries))
        names = (name for one in made for name in one)
        return [each for name in names for each in members.get(name, [name]) if each.endswith(".o")]

    def total(self, sample: Sample, generated: Total) -> Total:
        number = len(self.compiles())
        linked_objects = len(self.linked_objects(self.executables())) * sample.object
        disk = number * (2 * sample.object + sample.apart) + linked_objects * sample.linked
        cpu = number * sample.compile + linked_objects * sample.link
        return Total(cpu + generated.cpu, disk + generated.disk)


def size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def configured(source: Path, folder: Path, arguments: list[str], targets: list[str] | None) -> Build:
    """A configured build folder, and the steps to its targets; None: those that Triton needs."""
    timed, through = folder / "timed.sh", folder / "timed.cmake"
    folder.mkdir(parents=True, exist_ok=True)
    timed.write_text(TIMED)
    timed.chmod(0o755)
    through.write_text(f'set_property(GLOBAL PROPERTY RULE_LAUNCH_CUSTOM "{timed}")\n')
    arguments = [*arguments, f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={through}"]
    llvm_build.configure(sources.Source(source, ""), folder, arguments)
    if targets is None:
        triton = Path(os.environ["TRITON_SRC"])
        targets = recipe.targets(triton, ninja_build.known_targets(folder), clang=False)
    return Build(folder, ninja_build.outstanding(folder, targets))


def generate(ours: Build, by_hand: Build, number: int) -> tuple[Total, Total]:
    """What all that is generated takes: here, and by hand as the same for some files would have it."""
    names = ours.generated()
    ours.make(names)
    runs = ours.ran("tblgen")
    by_hand.make(f"bin/{tool}" for tool in TABLEGEN.values())
    files = sorted((n for n in names if n.startswith("lib/Target/")), key=lambda n: size(ours.folder / n))
    step = max(1, len(files) // number)
    here, there = ([build.step_time(name) for name in files[step // 2 :: step]] for build in (ours, by_hand))
    held = sum(size(ours.folder / name) for name in names)
    inside = llvm_build.size(ours.folder / "NATIVE")
    print(f"TableGen: {runs / 60:.0f} min and its build {ours.ran('cmake') / 60:.0f} min;", end=" ")
    print(f"by hand each of {len(here)} files takes {sum(there) / sum(here):.1f} times as long")
    return Total(runs + ours.ran("cmake"), held + inside), Total(runs * sum(there) / sum(here), held)


@pytest.mark.skipif("LLVM_SRC" not in os.environ, reason="needs LLVM_SRC=FOLDER TRITON_SRC=FOLDER")
@pytest.mark.timeout(0)
def test_cpu_time_and_disk_against_all_of_llvm_by_hand(tmp_path: Path) -> None:
    source, compiler = Path(os.environ["LLVM_SRC"]), recipe.compiler()
    launcher = llvm_build.launcher(source, tmp_path / "ours", compiler)
    wanted = recipe.arguments(compiler, "Debug", recipe.jobs(compiler), launcher, clang=False, commit="")
    ours = configured(source, tmp_path / "ours", wanted, None)
    more = [*BY_HAND, *shlex.split(os.environ.get("BY_HAND", ""))]
    by_hand = configured(source, tmp_path / "by-hand", more, [])
    number = int(os.environ.get("SAMPLE", "12"))
    common = [one for one in ours.compiles() if one in set(by_hand.compiles())]
    objects = common[:: max(1, len(common) // number)]

    generated = generate(ours, by_hand, max(1, number // 3))
    given = [f"-D{name}={ours.folder}/NATIVE/bin/{tool}" for name, tool in TABLEGEN.items()]
    configured(source, by_hand.folder, [*more, *given], [])
    builds = zip(("ours", "by hand"), (ours, by_hand), generated, strict=True)
    totals = [show(*one, objects) for one in builds]

    print(f"{totals[0].cpu / totals[1].cpu:.2f} of the CPU time,", end=" ")
    print(f"{totals[0].disk / totals[1].disk:.2f} of the disk")
    assert ours.compiles()


def show(name: str, build: Build, generated: Total, objects: list[str]) -> Total:
    sample, number = build.sample(objects), len(build.compiles())
    total = build.total(sample, generated)
    print(f"{name}: {len(build.steps)} steps, {number} compiles, {len(build.executables())} executables")
    print(f"  generated in {generated.cpu / 60:.0f} min, {generated.disk / 1e6:.0f} MB")
    one = f"a compile {sample.compile:.1f} s, {sample.object / 1e6:.2f} + {sample.apart / 1e6:.2f} MB"
    print(f"  {one}; a program has {sample.linked:.2f} of the bytes of its objects")
    print(f"  all {total.cpu / 3600:.1f} h, {total.disk / 1e9:.1f} GB")
    return total


# ---------------------------------------------------------------- gdb, to its first breakpoint

SOURCED = ROOT / "tracing/attach/debuggers/gdb_load.py"  # as VSCode and `tracing debug` have it
TIME = "python import os, time; print('at', time.process_time(), time.time() - float(os.environ['STARTED']))"


@dataclass(frozen=True)
class Stop:
    cpu: float  # seconds that gdb itself took
    clock: float  # seconds from its start, with those of the program


def breakpoints(triton: Path) -> dict[str, str]:
    """gdb commands that stop in a pass: our command, a name, and file and line in two forms."""
    source = triton.resolve() / proofs.COALESCE
    _, line = proofs.lines_of_pass(source)
    return {
        "pass": "break-pass tritongpu-coalesce",
        "name": "break mlir::triton::gpu::CoalescePass::runOnOperation",
        "file:line": f"break {source.name}:{line}",
        "path:line": f"break -source {source} -line {line}",
    }


def package(folder: Path, triton: Path, library: Path) -> Path:
    """Where Python finds Triton's package with another library in it."""
    for part in (own := triton / "python/triton").iterdir():
        (folder / "triton/_C").mkdir(parents=True, exist_ok=True)
        if part.name != "_C":
            (folder / "triton" / part.name).symlink_to(part)
    for part in (own / "_C").iterdir():
        (folder / "triton/_C" / part.name).symlink_to(part if part.name != "libtriton.so" else library)
    return folder


def stopped(breakpoint_: str, packages: Path) -> Stop:
    before = (f"source {SOURCED}", "set index-cache enabled off", f"set environment PYTHONPATH {packages}")
    words = [word for line in before for word in ("-iex", line)]
    words += [word for line in (breakpoint_, "run", TIME, "kill") for word in ("-ex", line)]
    program = [proofs.python(Path(os.environ["VENV"])), str(proofs.HERE / "kernel.py")]
    with proofs.fresh() as environment:
        said = subprocess.run(
            [os.environ.get("GDB", "gdb"), "-nx", "-batch", *words, "--args", *program],
            cwd="/",
            env={**environment, "STARTED": str(time.time())},
            capture_output=True,
            text=True,
        ).stdout
    assert "CoalescePass::runOnOperation (this=" in said, said
    cpu, clock = re.findall(r"^at (\S+) (\S+)$", said, re.M)[0]
    return Stop(float(cpu), float(clock))


@pytest.mark.skipif("VENV" not in os.environ, reason="needs VENV=FOLDER TRITON_SRC=FOLDER of `make triton`")
@pytest.mark.timeout(0)
def test_gdb_to_its_first_stop_with_the_index_against_without(tmp_path: Path) -> None:
    triton, bare = Path(os.environ["TRITON_SRC"]), tmp_path / "libtriton.so"
    indexed = triton / "python/triton/_C/libtriton.so"
    subprocess.run(["objcopy", "--remove-section=.gdb_index", indexed, bare], check=True)
    with_index = package(tmp_path / "with", triton, indexed)
    without = package(tmp_path / "without", triton, bare)

    for name, breakpoint_ in breakpoints(triton).items():
        ours, theirs = stopped(breakpoint_, with_index), stopped(breakpoint_, without)
        print(f"{name}: gdb takes {ours.cpu:.1f} s with the index, {theirs.cpu:.1f} s without:", end=" ")
        print(f"{ours.cpu / theirs.cpu:.2f}; on the clock {ours.clock:.1f} and {theirs.clock:.1f} s")

    assert bare.stat().st_size < indexed.stat().st_size
