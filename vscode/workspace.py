"""Write the settings, the recommended extensions and the folders of VSCode's workspace.

Standard library only.
"""

from __future__ import annotations

from typing import Any

from vscode import jsonc
from vscode.dialects import LLDB_DAP
from vscode.extensions import EXTENSIONS, OURS, PYTHON
from vscode.files import Files
from vscode.templates import template

_CLANGD = "llvm-vs-code-extensions.vscode-clangd"

WORKSPACE = "debug-triton.code-workspace"


def settings(known: dict[str, Any], kind: str) -> dict[str, Any]:
    """The settings whose tool or folder exists."""
    members = template("settings.json.in", known)
    if not known["@BUILD@"]:
        del members["clangd.arguments"]
    if kind != LLDB_DAP or not known["@LLDB_DAP@"]:
        del members["lldb-dap.executable-path"]
    return members


def recommend(files: Files, kind: str) -> None:
    """Recommend the extensions of this kind of debugger; those of another kind are no longer recommended."""
    wanted = [name for name in (PYTHON, EXTENSIONS[kind], _CLANGD) if name != OURS]
    stale = set(EXTENSIONS.values()) - set(wanted)

    def change(text: str) -> str:
        there = jsonc.read(text).get("recommendations", [])
        new = [name for name in wanted if name not in there]
        return (
            jsonc.with_items(text, "recommendations", stale.__contains__, new)
            if new or stale & set(there)
            else text
        )

    files.edit(".vscode/extensions.json", change, {"recommendations": []})


def workspace(files: Files, known: dict[str, Any]) -> None:
    """A workspace of this project, Triton's Python, and the available C++ sources; no folder that is gone."""
    folders = [{"path": "."}, {"path": known["@BACKENDS@"], "name": "triton/backends"}]
    folders += [{"path": known[word]} for word in ("@TRITON@", "@LLVM@") if known[word]]

    def gone(entry: Any) -> bool:
        path = files.folder / str(entry.get("path", ".")) if isinstance(entry, dict) else files.folder
        return not path.is_dir() or not any(path.iterdir())

    def change(text: str) -> str:
        entries = jsonc.read(text).get("folders", [])
        there = [entry.get("path") for entry in entries if isinstance(entry, dict)]
        new = [entry for entry in folders if entry["path"] not in there]
        return jsonc.with_items(text, "folders", gone, new) if new or any(map(gone, entries)) else text

    files.edit(WORKSPACE, change, {"folders": []})
