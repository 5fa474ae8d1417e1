"""Write VSCode's configuration for F5 into .vscode and a workspace file, for this machine and environment.

It names only existing sources, builds and debuggers. A user's own entries and comments stay; a second run
changes nothing. Standard library only. Exit status: 0 written, 2 not, with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.pins import Problem  # of scripts/, which is on the path
from vscode import dialects, jsonc
from vscode.dialects import DAP, GDB, GROUP, KINDS, LLDB_DAP, Machine, Native
from vscode.extensions import PYTHON, lacking
from vscode.files import Files
from vscode.installation import DAP_SINCE, EXTENSIONS, debugger, facts, gdb_version

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIVE = "Triton: debug compile (Python + C++)"
REPLAY = "Triton: replay pass"
FIRST = "Triton: silu to its first C++ stop"  # what F5 does in a new window
PRESET = f"preset-of-{GROUP}"  # sorts before GROUP: VSCode's F5 starts the first configuration
PICKER = "${command:pickProcess}"


def words(value: Any, known: dict[str, Any]) -> Any:
    """A template with its @WORDS@ filled in; a placeholder in a list may become several items."""
    if isinstance(value, dict):
        return {key: words(item, known) for key, item in value.items()}
    if isinstance(value, list):
        filled = [words(item, known) for item in value]
        return [one for item in filled for one in (item if isinstance(item, list) else [item])]
    if isinstance(value, str):
        if value in known:
            return known[value]
        for word, text in known.items():
            value = value.replace(word, str(text))
    return value


def template(name: str, known: dict[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = words(json.loads((HERE / name).read_text(encoding="utf-8")), known)
    return filled


def configurations(entries: list[Any], machine: Machine, kind: str, cases: list[str]) -> list[dict[str, Any]]:
    """The template's entries: one for each case if requested, native ones in the debugger's dialect."""
    expanded: list[dict[str, Any]] = []
    for entry in entries:
        if entry.pop("needs", "it"):
            each = entry.pop("each", "")
            copies = [{"@CASE@": case, "@CASEFILE@": case} for case in cases] if each else [{}]
            expanded += [words(entry, copy) for copy in copies]
    whole = [native(entry, machine, kind) if "native" in entry else entry for entry in expanded]
    return [entry | {"presentation": {"group": GROUP}} for entry in whole]


def native(entry: dict[str, Any], machine: Machine, kind: str) -> dict[str, Any]:
    request = entry["native"]
    pid = entry.get("pid") or (PICKER if request == "attach" else "")
    what = Native(
        request, entry["name"], entry["program"], entry["commands"], entry.get("args", []), pid,
        entry.get("preLaunchTask", ""), entry.get("forks", False),
    )  # fmt: skip
    return dialects.written(what, kind, machine)


def session(machine: Machine, kind: str) -> dict[str, Any]:
    """The session that a stopped process requests from VSCode; attach/session.py fills in the braces."""
    commands = ["break-pass {pass} {kernel}"]
    what = Native("attach", "C++ {pass} of {kernel} (pid {pid})", machine.python, commands, [], "{pid}")
    return dialects.written(what, kind, machine)


def preset(entry: dict[str, Any], wanted: str, arguments: list[str]) -> dict[str, Any]:
    """A configuration with kernel, stage and pass filled in."""
    kernel, stage, name = wanted.split(":")
    arguments = [*(["-m", "tracing"] if "-m" in entry["args"] else []), "execute", *arguments]
    entry_of_pass = entry | {"name": f"Triton: {name} of {kernel} ({stage})", "args": arguments}
    if "env" in entry:
        entry_of_pass["env"] = entry["env"] | {"TRACING_STOP": wanted}
    return entry_of_pass | {"presentation": {"group": PRESET}}


def grouped(*groups: str) -> Callable[[Any], bool]:
    """True if a configuration is in one of these groups."""

    def mine(entry: Any) -> bool:
        there = entry.get("presentation", {}) if isinstance(entry, dict) else {}
        return there.get("group") in groups

    return mine


def ours(entry: Any) -> bool:
    """True if a configuration is written anew, or is a preset whose run was deleted."""
    if not grouped(PRESET)(entry):
        return grouped(GROUP, f"{GROUP}-preset")(entry)  # the latter was written by an earlier version
    words = entry.get("args", [])
    run = words[words.index("execute") + 1] if "execute" in words[:-1] else ""
    return "--pass" in words and not Path(run, "run.json").exists()


def prefixed(key: str, prefix: str) -> Callable[[Any], bool]:
    return lambda entry: isinstance(entry, dict) and str(entry.get(key, "")).startswith(prefix)


def generate(files: Files, machine: Machine, known: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Compute every file; return the launch configurations."""
    launch, tasks = template("launch.json.in", known), template("tasks.json.in", known)
    entries = configurations(launch["configurations"], machine, kind, known["@CASES@"])

    def launching(text: str) -> str:
        text = jsonc.with_member(text, "version", "0.2.0")
        text = jsonc.with_items(text, "configurations", ours, entries)
        return jsonc.with_items(text, "inputs", prefixed("id", "triton-"), launch["inputs"])

    def tasked(text: str) -> str:
        text = jsonc.with_member(text, "version", "2.0.0")
        listed = [task for task in tasks["tasks"] if task.pop("needs", "it")]
        text = jsonc.with_items(text, "tasks", prefixed("label", "triton: "), listed)
        asked = [one for one in launch["inputs"] if f"${{input:{one['id']}}}" in json.dumps(listed)]
        return jsonc.with_items(text, "inputs", prefixed("id", "triton-"), asked)

    files.edit(".vscode/launch.json", launching, {"version": "0.2.0", "configurations": [], "inputs": []})
    files.edit(".vscode/tasks.json", tasked, {"version": "2.0.0", "tasks": [], "inputs": []})
    files.set_members(".vscode/settings.json", settings(known, kind))
    recommend(files, kind)
    workspace(files, known)
    files.edit(".vscode/triton-session.json", lambda text: jsonc.dumped(session(machine, kind)), {})
    if kind == DAP:
        for name in ("package.json", "extension.js"):
            content = (HERE / "extension" / name).read_text(encoding="utf-8")
            files.texts[files.folder / ".vscode/extensions/triton-gdb" / name] = content
    return entries


def settings(known: dict[str, Any], kind: str) -> dict[str, Any]:
    """The settings whose tool or folder exists."""
    settings = template("settings.json.in", known)
    if not known["@BUILD@"]:
        del settings["clangd.arguments"]
    if kind != LLDB_DAP or not known["@LLDB_DAP@"]:
        del settings["lldb-dap.executable-path"]
    return settings


def recommend(files: Files, kind: str) -> None:
    wanted = [
        PYTHON,
        *filter(None, [EXTENSIONS.get(kind)]),
        "llvm-vs-code-extensions.vscode-clangd",
    ]

    def change(text: str) -> str:
        there = jsonc.read(text).get("recommendations", [])
        new = [name for name in wanted if name not in there]
        return jsonc.with_items(text, "recommendations", lambda entry: False, new) if new else text

    files.edit(".vscode/extensions.json", change, {"recommendations": []})


def workspace(files: Files, known: dict[str, Any]) -> None:
    """A workspace of this project, Triton's Python, and the available C++ sources."""
    folders = [{"path": "."}, {"path": known["@BACKENDS@"], "name": "triton/backends"}]
    folders += [{"path": known[word]} for word in ("@TRITON@", "@LLVM@") if known[word]]

    def change(text: str) -> str:
        there = [
            entry.get("path") for entry in jsonc.read(text).get("folders", []) if isinstance(entry, dict)
        ]
        new = [entry for entry in folders if entry["path"] not in there]
        return jsonc.with_items(text, "folders", lambda entry: False, new) if new else text

    files.edit("debug-triton.code-workspace", change, {"folders": []})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="the Python environment")
    parser.add_argument("--toolchain", type=Path, default=ROOT / "toolchain", help="folder of sources")
    parser.add_argument("--folder", type=Path, default=ROOT, help="what VSCode opens")
    parser.add_argument("--debugger", choices=KINDS, help="of C++; else the one that is installed")
    parser.add_argument("--live", metavar="KERNEL:STAGE:PASS", help="also: run a case, and stop there")
    parser.add_argument("--replay", metavar="KERNEL:STAGE:PASS", help="also: replay a recorded pass")
    parser.add_argument("arguments", nargs="*", help="of `tracing execute`, for --live and --replay")
    options = parser.parse_args()
    try:
        changed, kind = written(options)
    except jsonc.Malformed as error:
        return refused(Problem(str(error), "correct it there; no file was changed"))
    except Problem as problem:
        return refused(problem)
    for path in changed:
        print(f"vscode: wrote {path}")
    for line in lacking([PYTHON, *filter(None, [EXTENSIONS.get(kind)])], Path.home()):
        print(f"vscode: {line}", file=sys.stderr)
    done = "open debug-triton.code-workspace and press F5" if changed else "nothing to do"
    print(f"vscode: {done}; C++: {kind}")
    return 0


def refused(problem: Problem) -> int:
    print(f"vscode: {problem}\n  {problem.remedy}", file=sys.stderr)
    return 2


def written(options: argparse.Namespace) -> tuple[list[Path], str]:
    machine, known = facts(ROOT, options.folder, options.venv, options.toolchain)
    kind = options.debugger or debugger(Path.home(), machine.gdb)
    if kind == DAP and gdb_version(machine.gdb) < DAP_SINCE:
        reason = f"{machine.gdb or 'no gdb'} has no debug adapter, which came with gdb {DAP_SINCE}"
        raise Problem(reason, "name a newer one in GDB, or take another: --debugger cppdbg")
    if kind == GDB and not machine.gdb:
        print(
            "vscode: there is no gdb, so only Python will stop; `make doctor` names the package",
            file=sys.stderr,
        )
    files = Files(options.folder)
    entries = generate(files, machine, known, kind)
    for wanted, name in ((options.live, LIVE), (options.replay, REPLAY)):
        if wanted:
            entry = next(entry for entry in entries if entry["name"] == name)
            add_preset(files, preset(entry, wanted, options.arguments))
    return files.write(), kind


def add_preset(files: Files, entry: dict[str, Any]) -> None:
    # one at a time: VSCode starts the first one if the previously chosen one no longer exists
    def change(text: str) -> str:
        return jsonc.with_items(text, "configurations", grouped(PRESET, f"{GROUP}-preset"), [entry])

    files.edit(".vscode/launch.json", change, {})


if __name__ == "__main__":
    sys.exit(main())
