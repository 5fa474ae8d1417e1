"""What this machine has for F5: the environment, a debugger of C++, sources, builds.

Standard library only.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from dialects import DAP, GDB, LLDB, Machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))

from machine import installed, output  # its path is known from here on
from pins import Problem

EXTENSIONS = {GDB: "ms-vscode.cpptools", LLDB: "vadimcn.vscode-lldb"}
# VSCode, its server, VSCodium, code-server
HOMES = (".vscode", ".vscode-server", ".vscode-oss", ".local/share/code-server", ".cursor")
DAP_SINCE = 14  # gdb's first version with a debug adapter


def gdb_version(gdb: str) -> int:
    """Its major version, 0 if it does not run."""
    words = output(gdb, "--version").partition("\n")[0].split()
    number = words[-1].partition(".")[0] if words else ""
    return int(number) if number.isdigit() else 0


def debugger(home: Path, gdb: str) -> str:
    """The kind that is installed; where none is, the one that can be had there."""
    found = {entry.name for place in HOMES for entry in (home / place / "extensions").glob("*-*")}
    for kind, extension in EXTENSIONS.items():
        if any(name.lower().startswith(f"{extension}-") for name in found):
            return kind
    return GDB if shutil.which("code") or gdb_version(gdb) < DAP_SINCE else DAP


def facts(root: Path, folder: Path, venv: Path, toolchain: Path) -> tuple[Machine, dict[str, Any]]:
    """What is on this machine, and the words of the templates. Raises Problem without an environment."""
    python = venv.absolute() / "bin/python"  # not resolved: a venv is known by its own path
    there = installed(venv)
    if not there["triton"]:
        raise Problem(f"{venv} has no Triton", "make venv")
    triton = Path(there["triton_source"]) if there["triton_source"] else toolchain.resolve() / "triton"
    llvm = toolchain.resolve() / "llvm-project"
    gdb = shutil.which(os.environ.get("GDB") or "gdb") or ""
    sources = tuple(path for path in (triton, llvm) if triton.is_dir() and path.is_dir())
    machine = Machine(root, str(python), gdb, sources)
    builds = sorted(triton.glob("build/*/compile_commands.json"))
    return machine, {
        "@ROOT@": str(root),
        "@PYTHON@": str(python),
        "@LAUNCH@": str(root / "tracing/attach/launch"),
        "@SESSION@": str(folder.resolve() / ".vscode/triton-session.json"),
        "@CASES@": sorted(path.stem for path in (root / "cases").glob("*.py")),
        "@CHECK@": str(next((root / "tracing/cli").glob("check.py"), "")),  # a command, where there is one
        "@GDB@": gdb or "gdb",
        "@LIBTRITON@": f"{there['triton_path']}/_C/libtriton.so",
        "@BACKENDS@": f"{there['triton_path']}/backends",
        "@BUILD@": str(builds[0].parent) if builds else "",
        "@TRITON@": str(triton) if triton.is_dir() else "",
        "@LLVM@": str(llvm) if llvm.is_dir() else "",
        "@OPT@": next(map(str, sorted(toolchain.resolve().glob("llvm*/**/bin/opt"))), ""),
        "@TRITON_OPT@": next(map(str, sorted(triton.glob("build/*/bin/triton-opt"))), ""),
    }
