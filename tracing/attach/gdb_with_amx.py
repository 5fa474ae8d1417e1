"""Let gdb 12 and 13 call functions of a process on a processor with AMX.

A gdb before 14 (gdb commit b42405a1594) cannot write floating-point registers there, which each call does
when it ends. debuggers/whole_xsave.c gives the reason, and writes them: a script starts gdb with it.
Standard library only: `make doctor` and `make vscode` use it too.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("debuggers") / "whole_xsave.c"
_SINCE = 14
_COMPILERS = ("cc", "gcc", "clang")
_CALL = "print ((int (*)(int)) abs)(-7)"  # of libc, which is loaded when a program exits


def able_to_call(gdb: str, folder: Path) -> str:
    """gdb, or a script in a folder that starts it with whole_xsave.c, if its calls need that.

    gdb    -- its path; returned as it is, too, if there is no C compiler
    folder -- for the script and its library; LD_PRELOAD, which loads it, allows no space or colon in the path

    Cost: 0.2 s at the first use of a folder.
    """
    if not needed(gdb):
        return gdb
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None or re.search("[ :]", str(folder.resolve())):
        return gdb
    try:
        return _script(gdb, folder, compiler)
    except (OSError, subprocess.CalledProcessError):
        return gdb


def needed(gdb: str) -> bool:
    """True if this gdb needs whole_xsave.c: it is older than 14, and processor and kernel have AMX."""
    processor = Path("/proc/cpuinfo")  # of Linux
    has_amx = processor.exists() and re.search(r"\bamx_tile\b", processor.read_text(encoding="utf-8"))
    return bool(has_amx) and 0 < version(gdb) < _SINCE


def version(gdb: str) -> int:
    """The major version of a gdb, 0 if it does not run."""
    words = _output(gdb, "--version").partition("\n")[0].split()
    number = words[-1].partition(".")[0] if words else ""
    return int(number) if number.isdigit() else 0


def refused_call(gdb: str) -> str:
    """Have gdb call a function in a process that it starts; what it says if that fails, "" if not."""
    commands = ("set debuginfod enabled off", "catch syscall exit_group", "run", _CALL)
    words = [word for command in commands for word in ("-ex", command)]
    output = _output(gdb, "-nx", "-batch", *words, "--args", "/bin/true")
    return "" if "$1 = 7" in output else output.rpartition("\n")[2] or f"{gdb} prints nothing"


def _script(gdb: str, folder: Path, compiler: str) -> str:
    key = hashlib.blake2b(_SOURCE.read_bytes() + gdb.encode(), digest_size=8).hexdigest()
    library, script = folder.resolve() / f"whole_xsave-{key}.so", folder.resolve() / f"gdb-with-amx-{key}"
    if script.exists():
        return str(script)
    folder.mkdir(parents=True, exist_ok=True)
    # in a folder of its own, then moved: several processes may start gdb at the same time
    with tempfile.TemporaryDirectory(dir=folder) as own:
        built, written = Path(own, library.name), Path(own, script.name)
        command = [compiler, "-O2", "-shared", "-fPIC", str(_SOURCE), "-o", str(built), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        built.replace(library)
        loaded = f"LD_PRELOAD={shlex.quote(str(library))}${{LD_PRELOAD:+:$LD_PRELOAD}}"
        written.write_text(f'#!/bin/sh\n{loaded} exec {shlex.quote(gdb)} "$@"\n', encoding="utf-8")
        written.chmod(0o755)
        written.replace(script)
    return str(script)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return ""
    return f"{done.stdout}{done.stderr}".strip()
