"""List what this machine lacks for debugging Triton, the effect, and the command that installs it.

One function per check; CHECKS lists them. This module checks the requirements of every command. Standard
library only, because it runs before anything is installed.
Exit status: 0 nothing is missing, 1 something optional is missing, 2 something required is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from scripts import build_checks, debug_checks, pins
from scripts.check import LEVELS, Check
from scripts.machine import GB, cores, free, gpus, install, installed, memory, output, room


def check_system(_venv: Path) -> Check:
    present = f"{platform.system()} {platform.machine()}"
    if present in ("Linux x86_64", "Linux aarch64"):
        return Check("system", present, "Linux on x86_64 or aarch64")
    return Check(
        "system",
        present,
        "Linux on x86_64 or aarch64",
        "blocker",
        "work in a container or on another machine; analyses read runs from anywhere",
        "Triton has no wheel for this system",
    )


def check_python(_venv: Path) -> Check:
    here = (sys.version_info[0], sys.version_info[1])
    known = pins.read()
    needed = "3.10 or later, with wheels of a known torch"
    if any(pair.allows(here) for pair in known.pairs):
        return Check("python", platform.python_version(), needed)
    remedy = install("python3.11 python3.11-venv", "python3.12", "python=3.12") + ", then make PYTHON=…"
    return Check("python", platform.python_version(), needed, "blocker", remedy, "no environment")


def check_venv(_venv: Path) -> Check:
    # Debian installs the venv module always, but its dependencies are in a separate package.
    needed = "the modules venv and ensurepip"
    if find_spec("ensurepip"):
        return Check("venv", "Python's modules venv and ensurepip", needed)
    remedy = install("python3-venv", "python3", "python")
    return Check("venv", "no ensurepip", needed, "blocker", remedy, "no environment")


def check_compiler(_venv: Path) -> Check:
    needed = "gcc or clang, for C and C++"
    c = next(filter(shutil.which, [os.environ.get("CC", ""), "gcc", "clang", "cc"]), "")
    cxx = next(filter(shutil.which, [os.environ.get("CXX", ""), "g++", "clang++", "c++"]), "")
    if c and cxx:
        return Check("compiler", output(c, "--version").partition("\n")[0], needed)
    remedy = install("build-essential", "gcc-c++", "cxx-compiler")
    cost = "Triton cannot build its launchers, nor Inductor its CPU kernels"
    return Check("compiler", f"C: {c or 'none'}, C++: {cxx or 'none'}", needed, "blocker", remedy, cost)


def check_headers(_venv: Path) -> Check:
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if header.exists():
        return Check("headers", str(header), "Python.h")
    remedy = install("python3-dev", "python3-devel", "python")
    cost = "the compilers' C++ has `#include <Python.h>` and fails to build"
    return Check("headers", "none", "Python.h", "blocker", remedy, cost)


def check_make(_venv: Path) -> Check:
    if shutil.which("make"):
        return Check("make", output("make", "--version").partition("\n")[0], "GNU make")
    remedy = install("make", "make", "make")
    return Check("make", "none", "GNU make", "warning", remedy, "run scripts/venv.py by hand")


def check_disk(venv: Path) -> Check:
    present, needed = free(venv), room(bool(gpus()))
    amount = f"{needed / GB:.0f} GB for the environment"
    if present >= needed or installed(venv)["torch"]:
        return Check("disk", f"{present / GB:.0f} GB free", amount)
    remedy = "free some, or put the environment elsewhere: make VENV=/elsewhere/venv"
    return Check("disk", f"{present / GB:.1f} GB free", amount, "blocker", remedy, "no environment")


def check_memory(_venv: Path) -> Check:
    total = memory()
    present = f"{total / GB:.0f} GB, {cores()} cores"
    needed = "4 GB and two cores"
    if total >= 3.5 * GB:
        return Check("memory", present, needed)
    remedy = "export TORCHINDUCTOR_COMPILE_THREADS=1"
    return Check("memory", present, needed, "warning", remedy, "compiling in parallel may be killed")


def check_gpu(_venv: Path) -> Check:
    present = gpus()
    needed = "none: kernels are compiled for any target and run on the CPU"
    if present and "does not answer" in present[0]:
        remedy = "reinstall the NVIDIA driver, or start the container with --gpus all"
        return Check("gpu", present[0], "a driver that answers", "warning", remedy, "the GPU is not used")
    if not present:
        return Check("gpu", "none; kernels run on the CPU", needed)
    return Check("gpu", "; ".join(present), "any")


def check_pair(venv: Path) -> Check:
    there, known = installed(venv), pins.read()
    needed = f"a torch with its Triton, a pair listed in scripts/pins.toml; torch {known.default} by default"
    if not (there["torch"] and there["triton"]):
        lacking = " and ".join(name for name in ("torch", "triton") if not there[name])
        cost = "nothing can be recorded yet"
        return Check("torch", f"no {lacking} in {venv}", needed, "warning", "make venv", cost)
    present = f"torch {there['torch']}, Triton {there['triton']}"
    if gpus() and there["torch"].endswith("+cpu"):
        cost = "the GPU is not used"
        return Check("torch", present, "a torch for this GPU", "warning", "make clean venv", cost)
    if known.known(there["torch"], there["triton"]):
        return Check("torch", present, needed)
    cost = "hooks may miss what another version renamed"
    return Check("torch", present, needed, "warning", "make clean venv", cost)


def check_duckdb(venv: Path) -> Check:
    needed = "duckdb, for `tracing sql` and `tracing export --parquet`"
    folders = sorted(venv.glob("lib/python*/site-packages/duckdb-*.dist-info"))
    if folders:
        return Check("duckdb", folders[-1].name.removesuffix(".dist-info").partition("-")[2], needed)
    remedy = f"{venv}/bin/python -m pip install duckdb"
    return Check("duckdb", f"none in {venv}", needed, "warning", remedy, "no SQL over runs, no Parquet")


CHECKS: tuple[Callable[[Path], Check], ...] = (
    check_system,
    check_python,
    check_venv,
    check_compiler,
    check_headers,
    check_make,
    check_disk,
    check_memory,
    check_gpu,
    check_pair,
    check_duckdb,
    *debug_checks.CHECKS,
    *build_checks.CHECKS,
)


def status(checks: list[Check]) -> int:
    return max(LEVELS.index(check.level) for check in checks)


def table(checks: list[Check]) -> str:
    lines = []
    for check in checks:
        lines.append(f"{check.level:8} {check.name:9} {check.found}")
        if check.level != "ok":
            lines += [f"{'':9}{label:9} {getattr(check, label)}" for label in ("needed", "cost", "remedy")]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=Path(".venv"), help="the environment to look into")
    parser.add_argument("--json", action="store_true", help="the checks as JSON")
    options = parser.parse_args()
    checks = [check(options.venv) for check in CHECKS]
    if options.json:
        report = {"status": status(checks), "checks": [asdict(check) for check in checks]}
        print(json.dumps(report, indent=2))
    else:
        print(table(checks))
    return status(checks)


if __name__ == "__main__":
    sys.exit(main())
