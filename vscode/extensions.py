"""Detect which extensions of VSCode are installed, and say how to get those that F5 needs.

Standard library only.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.machine import output

PYTHON = "ms-python.debugpy"
EDITORS = ("code", "codium", "code-server", "cursor")
# of VSCode, its server, VSCodium, code-server, Cursor
HOMES = (".vscode", ".vscode-server", ".vscode-oss", ".local/share/code-server", ".cursor")


def installed_extensions(home: Path) -> set[str]:
    """The names of the installed extensions of every editor, in lower case."""
    listed = {line.lower() for editor in EDITORS if shutil.which(editor) for line in _listed(editor)}
    folders = [entry.name for one in HOMES for entry in (home / one / "extensions").glob("*-*")]
    # "ms-python.debugpy-2026.6.0-linux-x64"
    return listed | {match[1].lower() for name in folders if (match := re.match(r"(.+?)-\d", name))}


def lacking(needed: Iterable[str], home: Path) -> list[str]:
    """A line for each extension that is needed and not installed: what it is for, and how to get it."""
    there = installed_extensions(home)
    editor = next(filter(shutil.which, EDITORS), "code")
    return [
        f"{name} is not installed in VSCode: `{editor} --install-extension {name}`; without a network, "
        f"download its .vsix elsewhere, then `{editor} --install-extension FILE.vsix`"
        for name in needed
        if name.lower() not in there
    ]


def _listed(editor: str) -> list[str]:
    return output(editor, "--list-extensions").splitlines()
