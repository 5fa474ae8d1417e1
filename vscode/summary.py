"""Say what F5 will do on this machine, and what is missing for it. Each line stands by itself.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracing.attach import wheel_source
from vscode.extensions import EXTENSIONS, OURS, editor_there

_RUNS = {  # the words of a configuration, without our options -> what it runs
    ("execute", "silu"): "the case silu",
    ("execute", "--otherwise", "silu"): "the Python file in the editor, or the case silu if there is none",
}


def f5(workspace: Path, entry: dict[str, Any] | None, *, native: bool) -> str:
    """What F5 does in a new window of a workspace.

    entry  -- the first configuration; None: there is none
    native -- a C++ debugger is installed
    """
    if entry is None:
        return f"F5 in {workspace} starts nothing, until the missing extensions are installed"
    stop = entry.get("env", {}).get("TRACING_STOP", "").rpartition(":")[2]
    what = next((text for words, text in _RUNS.items() if tuple(entry["args"][: len(words)]) == words), "")
    runs = f"runs {what}" if what and stop else f"starts {entry['name']!r}"
    if native and entry["type"] != "debugpy":  # it replays a recorded pass
        return f"F5 in {workspace} {runs}, and stops in the C++ of that pass"
    if stop and native:
        return f"F5 in {workspace} {runs}, and stops in the C++ of the pass {stop}"
    return f"F5 in {workspace} {runs}, and stops in Python only"


def missing_editor(kind: str, vsix: Path, home: Path) -> Iterator[str]:
    """What is not on this machine if no editor was detected, and what to type when there is one, in order.

    kind -- of the C++ debugger
    vsix -- our packed extension
    """
    if editor_there(home):
        return
    yield (
        "missing: VSCode, which was not detected here; install it, or connect to this machine from the "
        "VSCode of another one, over SSH"
    )
    purposes = {EXTENSIONS["debugpy"]: "for Python", EXTENSIONS[kind]: f"for stops in C++ ({kind})"}
    steps = [
        f"`code --install-extension {name}`, {purpose}" for name, purpose in purposes.items() if name != OURS
    ]
    lost = "nothing stops in C++, " if EXTENSIONS[kind] == OURS else ""
    last = (
        f"`make vscode` once more; it installs {OURS} from {vsix}. Until then {lost}F5 runs only the case "
        "silu, and kernels and passes are typed instead of chosen from lists"
    )
    for number, step in enumerate([*steps, last], 1):
        yield f"with VSCode, type in its terminal, {number} of {len(steps) + 1}: {step}"


def missing_source(there: bool) -> Iterator[str]:
    """That stops will show no C++ code.

    there -- the source of the installed Triton is on this machine
    """
    if not there:
        yield f"{wheel_source.MISSING}; then run `make vscode` once more"
