"""Detect what F5 needs on this machine: the environment, a C++ debugger, sources and builds.

Standard library only.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from scripts.machine import installed
from scripts.pins import Problem
from tracing.attach import gdb_with_amx
from vscode import problems
from vscode.dialects import DAP, GDB, LLDB, LLDB_DAP, Machine
from vscode.extensions import EXTENSIONS, installed_extensions

DAP_SINCE = 14  # gdb's first version with a debug adapter


def debugger(home: Path, gdb: str) -> str:
    """The installed debugger, or else the best one that can be installed."""
    there = installed_extensions(home)
    for kind in (GDB, LLDB, LLDB_DAP):
        if EXTENSIONS[kind] in there:
            return kind
    if not gdb and lldb_dap():
        return LLDB_DAP
    return DAP if gdb_with_amx.version(gdb) >= DAP_SINCE else GDB


def lldb_dap() -> str:
    """LLVM's debug adapter, by its name or with a distribution's version suffix; "" for none."""
    numbered = [path for path in Path("/usr/bin").glob("lldb-dap-*") if path.name[9:].isdigit()]
    newest = max(numbered, key=lambda path: int(path.name[9:]), default="")
    return shutil.which("lldb-dap") or str(newest)


def llvm_opt(toolchain: Path, system: Path = Path("/usr/lib")) -> str:
    """LLVM's opt: that of the LLVM with which Triton was built, else the system's newest; "": none."""
    record = toolchain / "llvm.json"
    built = [Path(json.loads(record.read_text(encoding="utf-8"))["folder"])] if record.exists() else []
    numbered = [folder for folder in system.glob("llvm-*") if folder.name[5:].isdigit()]
    newest = sorted(numbered, key=lambda folder: int(folder.name[5:]), reverse=True)
    there = [tool for folder in [*built, *newest] if (tool := folder / "bin/opt").exists()]
    return str(there[0]) if there else shutil.which("opt") or ""


def triton_opt(triton: Path, python: Path) -> list[str]:
    """The command of triton-opt: the one that was built with Triton, else this project's stand-in.

    The latter compiles in a fork of itself, which is why gdb follows forks.
    """
    built = sorted(triton.glob("build/*/bin/triton-opt"))
    return [str(built[0])] if built else [str(python), "-m", "tracing", "opt", "--stand-in"]


def facts(root: Path, folder: Path, venv: Path, toolchain: Path) -> tuple[Machine, dict[str, Any]]:
    """The facts about this machine, and values for the templates. Raises Problem without an environment."""
    python = venv.absolute() / "bin/python"  # not resolved: a venv is known by its own path
    there = installed(venv)
    if not there["triton"]:
        raise Problem(f"{venv} has no Triton", "make venv")
    triton = Path(there["triton_source"]) if there["triton_source"] else toolchain.resolve() / "triton"
    llvm = toolchain.resolve() / "llvm-project"
    # a download that failed leaves an empty folder
    there_are = {path: (path / known).exists() for path, known in ((triton, "lib"), (llvm, "mlir"))}
    path = shutil.which(os.environ.get("GDB") or "gdb")
    gdb = gdb_with_amx.able_to_call(path, folder / ".vscode") if path else ""
    sources = tuple(path for path in (triton, llvm) if there_are[triton] and there_are[path])
    libtriton = f"{there['triton_path']}/_C/libtriton.so"
    machine = Machine(root, str(python), gdb, libtriton, sources)
    builds = sorted(triton.glob("build/*/compile_commands.json"))
    optimiser = triton_opt(triton, python)
    return (
        machine,
        {
            "@ROOT@": str(root),
            "@PYTHON@": str(python),
            "@LAUNCH@": str(root / "tracing/attach/launch"),
            "@SESSION@": str(folder.resolve() / ".vscode/triton-session.json"),
            "@CASES@": sorted(path.stem for path in (root / "cases").glob("*.py")),
            "@GDB@": gdb or "gdb",
            "@LIBTRITON@": libtriton,
            "@BACKENDS@": f"{there['triton_path']}/backends",
            "@BUILD@": str(builds[0].parent) if builds else "",
            "@TRITON@": str(triton) if there_are[triton] else "",
            "@LLVM@": str(llvm) if there_are[llvm] else "",
            "@FINDINGS@": problems.findings(str(root)),
            "@GRAPH_BREAKS@": problems.graph_breaks(str(root)),
            "@LLDB_DAP@": lldb_dap(),
            "@OPT@": llvm_opt(toolchain.resolve()),
            "@TRITON_OPT@": optimiser[0],
            "@TRITON_OPT_ARGS@": optimiser[1:],
            "@TRITON_OPT_COMMAND@": shlex.join(optimiser),
        },
    )
