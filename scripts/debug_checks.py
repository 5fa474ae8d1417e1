"""Check whether a debugger can stop in the installed Triton: gdb, the kernel's permission, the library."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.build import checkout
from scripts.build.library import HOOKS, Library
from scripts.check import Check
from scripts.machine import install, installed, output, text
from tracing.attach import gdb_with_amx
from vscode import extensions, index_symbols, jsonc

PTRACE_SEIZE = 0x4206
LAUNCH = Path(__file__).resolve().parents[1] / ".vscode/launch.json"
TOOLS = ("ptxas", "cuobjdump", "nvdisasm")


def check_gdb(_venv: Path) -> Check:
    first = output("gdb", "--version").partition("\n")[0]
    needed = "gdb, for stops in C++; 14 or later to be driven without an extension of the editor"
    version = re.search(r"(\d+)\.\d+\s*$", first)
    if not first:
        remedy = install("gdb", "gdb", "gdb")
        return Check("gdb", "none", needed, "warning", remedy, "only Python can be stopped in")
    if version and int(version.group(1)) < 14:
        remedy = "nothing to do in VSCode, whose C++ extension drives any gdb; elsewhere install a newer one"
        return Check("gdb", first, needed, "ok", remedy, "no debug adapter inside of gdb")
    return Check("gdb", first, needed)


def check_ptrace(_venv: Path) -> Check:
    needed = "a child process that can be traced: gdb attaches to a stopped compile"
    scope = text("/proc/sys/kernel/yama/ptrace_scope")
    refused = traced_child()
    if not refused:
        return Check("ptrace", "a child was traced", needed)
    if scope in ("2", "3"):
        remedy = "sudo sysctl kernel.yama.ptrace_scope=1" + (" after a reboot" if scope == "3" else "")
    else:
        remedy = "start the container with --cap-add=SYS_PTRACE --security-opt seccomp=unconfined"
    present = f"{refused}, {f'with ptrace_scope {scope} of Yama' if scope else 'without Yama'}"
    return Check("ptrace", present, needed, "warning", remedy, "gdb cannot attach")


def check_calls(_venv: Path) -> Check:
    """Have gdb call a function of a process that it starts, as print-op does."""
    needed = "a gdb that calls functions of its process"
    gdb = shutil.which("gdb")
    if not gdb or traced_child():
        return Check("calls", f"not tried: {'ptrace is refused' if gdb else 'no gdb'}", needed)
    with tempfile.TemporaryDirectory() as folder:
        able = gdb_with_amx.able_to_call(gdb, Path(folder))
        message = gdb_with_amx.refused_call(able)
    if not message:
        extended = ", extended for this processor, which has AMX" if able != gdb else ""
        return Check("calls", f"gdb called a function of a child{extended}", needed)
    reason = ", which has AMX" if gdb_with_amx.needed(gdb) else f": {message}"
    present = f"gdb {gdb_with_amx.version(gdb)} called none on this processor{reason}"
    remedy = "take gdb 14 or later, as in Debian 13 and Ubuntu 24.04; or " + install("gcc", "gcc", "gcc")
    cost = "print-op, print-module, watches and hovers show no IR"
    return Check("calls", present, needed, "warning", remedy, cost)


def traced_child() -> str:
    """Trace a child process for a moment; returns the error if that is refused, else an empty text."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        refused = libc.ptrace(PTRACE_SEIZE, child.pid, None, None)
        return f"refused: {os.strerror(ctypes.get_errno())}" if refused else ""
    finally:
        child.kill()
        child.communicate()


def library(venv: Path) -> Library | None:
    path = installed(venv)["triton_path"]
    present = Path(path, "_C", "libtriton.so")
    return Library(present) if path and present.exists() else None


def absent(name: str, needed: str, cost: str) -> Check:
    return Check(name, "no libtriton.so yet", needed, "warning", "make venv", cost)


def check_symbols(venv: Path) -> Check:
    present = library(venv)
    needed = "libtriton.so with symbols and line tables"
    if not present:
        return absent("symbols", needed, "no stops in C++")
    names = present.names()
    lacking = [name for name in (".symtab", ".debug_line") if name not in names]
    if not lacking:
        size = f"{present.path.stat().st_size / 10**6:.0f} MB"
        return Check("symbols", f"libtriton.so, {size}, with symbols and line tables", needed)
    cost = "gdb stops in passes by class name only" if lacking == [".debug_line"] else "no stops in C++"
    remedy = "install Triton's own wheel: make clean venv"
    return Check(
        "symbols", f"{present.path} without {' and '.join(lacking)}", needed, "warning", remedy, cost
    )


def check_index(venv: Path) -> Check:
    present, gdb = library(venv), shutil.which("gdb")
    needed = "gdb's index of the symbols"
    if not present:
        return absent("index", needed, "gdb reads every symbol at each start")
    if ".gdb_index" in present.names():
        return Check("index", "gdb's index of the symbols is in libtriton.so", needed)
    if not gdb:
        return Check("index", "none, without a gdb to make it", needed)
    if index_symbols.cached(gdb, index_symbols.build_id(present.path)):
        return Check("index", "gdb's index of the symbols is in its cache", needed)
    # nothing is lacking: the first gdb makes it too; measured on two cores
    return Check("index", "none yet; the first C++ stop takes 3 to 5 s more; `make vscode` makes it", needed)


def check_extensions(_venv: Path) -> Check:
    """Compare the extensions of VSCode with those that the files of `make vscode` need."""
    needed = "an extension of VSCode for each type of configuration that `make vscode` wrote"
    editor = extensions.editor_there(Path.home())
    if not editor or not LAUNCH.exists():
        unknown = "no VSCode on this machine" if not editor else "not checked before `make vscode`"
        return Check("extensions", unknown, needed)
    entries = jsonc.read(LAUNCH.read_text(encoding="utf-8"))["configurations"]
    types = {entry["type"] for entry in entries if entry.get("type") in extensions.EXTENSIONS}
    there = extensions.installed_extensions(Path.home())
    lacking = [name for one in sorted(types) if (name := extensions.EXTENSIONS[one]) not in there]
    if not lacking:
        return Check("extensions", f"installed for {', '.join(sorted(types)) or 'none'}", needed)
    remedy = "make vscode, which installs ours, and says how to get each other one without a network"
    return Check("extensions", f"no {', no '.join(lacking)}", needed, "warning", remedy, "F5 cannot start")


def check_exports(venv: Path) -> Check:
    present = library(venv)
    needed = "functions of MLIR that a debugger calls: " + ", ".join(HOOKS)
    cost = "a stopped compile accepts neither a pass pipeline nor LLVM options"
    if not present:
        return absent("exports", needed, cost)
    hooks = present.hooks()
    if len(hooks) == len(HOOKS):
        return Check("exports", "all functions of MLIR that a debugger calls", needed)
    remedy = "take Triton 3.7 or later: make clean venv TRITON=…"
    return Check("exports", ", ".join(hooks) or "none", needed, "warning", remedy, cost)


def check_tools(venv: Path) -> Check:
    path = Path(installed(venv)["triton_path"])
    needed = "ptxas, cuobjdump, nvdisasm, cuda.h and FileCheck in the folder of Triton"
    cost = "compiling stops at PTX, SASS is not shown, launchers are not built"
    if not library(venv):
        return absent("tools", needed, cost)
    nvidia = path / "backends/nvidia"
    parts = [*(nvidia / "bin" / tool for tool in TOOLS), nvidia / "include/cuda.h", path / "FileCheck"]
    lacking = [part.name for part in parts if not part.exists()]
    if not lacking:
        return Check("tools", f"{', '.join(TOOLS)}, cuda.h and FileCheck", needed)
    remedy = "install Triton's own wheel: make clean venv"
    return Check("tools", f"no {', no '.join(lacking)}", needed, "warning", remedy, cost)


def check_origin(venv: Path) -> Check:
    present, there = library(venv), installed(venv)
    needed = "Triton and its LLVM, of commits that are known"
    if not present:
        return absent("origin", needed, "the matching source is unknown")
    llvm = present.llvm_commit()[:12] or ", ".join(n for n in present.needed() if n.startswith("libLLVM"))
    where = f"from {there['triton_source']}" if there["triton_source"] else "a wheel"
    commit = checkout.head(Path(there["triton_source"]))[:12] if there["triton_source"] else ""
    parts = (f"Triton {there['triton']}", commit, where, f"LLVM {present.llvm_version()}", llvm)
    return Check("origin", " ".join(filter(None, parts)), needed)


CHECKS: tuple[Callable[[Path], Check], ...] = (
    check_gdb,
    check_ptrace,
    check_calls,
    check_symbols,
    check_index,
    check_extensions,
    check_exports,
    check_tools,
    check_origin,
)
