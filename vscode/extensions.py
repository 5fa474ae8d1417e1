"""Detect which extensions of VSCode are installed, install ours, and say how to get those that F5 needs.

Standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from scripts.machine import output
from vscode.dialects import DAP, GDB, LLDB, LLDB_DAP

PYTHON, OURS = "ms-python.debugpy", "debug-triton.triton-gdb"
# the extension that each type of configuration needs
EXTENSIONS = {
    GDB: "ms-vscode.cpptools",
    LLDB: "vadimcn.vscode-lldb",
    LLDB_DAP: "llvm-vs-code-extensions.lldb-dap",
    DAP: OURS,
    "debugpy": PYTHON,
}
EDITORS = ("code", "codium", "code-server", "cursor")
# of VSCode, its server, VSCodium, code-server, Cursor
HOMES = (".vscode", ".vscode-server", ".vscode-oss", ".local/share/code-server", ".cursor")
_VERSION = re.compile(r"(.+?)-(\d[\w.]*)")  # "ms-python.debugpy-2026.6.0-linux-x64"


def editor_there(home: Path) -> bool:
    """True if an editor is installed here, so that its extensions are known."""
    return any(map(shutil.which, EDITORS)) or any((home / one / "extensions").is_dir() for one in HOMES)


def installed_extensions(home: Path) -> dict[str, str]:
    """Version by name, in lower case, of the extensions of every editor and its folder; "": unknown."""
    listed = (line.lower() for editor in EDITORS if shutil.which(editor) for line in _listed(editor))
    folders = [entry.name.lower() for one in HOMES for entry in (home / one / "extensions").glob("*-*")]
    there = {match[1]: match[2] for name in folders if (match := _VERSION.match(name))}
    return there | {name: version for line in listed for name, _, version in [line.partition("@")]}


def install_ours(vsix: Path, package: Path, home: Path) -> str:
    """Install our extension into every editor; the reason if that fails, else nothing."""
    editors = list(filter(shutil.which, EDITORS))
    if installed_extensions(home).get(OURS) == json.loads(package.read_text(encoding="utf-8"))["version"]:
        return ""
    for editor in editors:
        command = [editor, "--install-extension", str(vsix), "--force"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}"
    return "" if editors else f"in VSCode, run *Extensions: Install from VSIX...* with {vsix}"


def lacking(types: Iterable[str], home: Path) -> list[str]:
    """A line for each type of configuration whose extension is not installed: how to get it."""
    there = installed_extensions(home)
    editor = next(filter(shutil.which, EDITORS), "code")
    needed = {EXTENSIONS[kind]: kind for kind in types if EXTENSIONS[kind] not in there}
    return [
        f"missing: {name}, so no configuration of type {kind} can run; install it: "
        f"`{editor} --install-extension {name}`; without a network, download its .vsix elsewhere, "
        f"then `{editor} --install-extension FILE.vsix`"
        for name, kind in needed.items()
        if name != OURS
    ]


def _listed(editor: str) -> list[str]:
    return output(editor, "--list-extensions", "--show-versions").splitlines()
