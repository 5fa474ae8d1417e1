"""Write VSCode's configuration for F5 into .vscode and a workspace file, for this machine and environment.

It names only existing sources, builds and debuggers. A user's own entries and comments stay; a second run
changes nothing. Standard library only. Exit status: 0 written, 2 not, with the reason.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.pins import Problem  # of scripts/, which is on the path
from tracing.attach import gdb_with_amx
from vscode import dialects, jsonc, summary
from vscode.dialects import DAP, GDB, GROUP, KINDS, Machine, Native
from vscode.extensions import EXTENSIONS, OURS, editor_there, install_ours, installed_extensions, lacking
from vscode.files import Files
from vscode.installation import DAP_SINCE, debugger, facts
from vscode.templates import template, words
from vscode.vsix import packed
from vscode.workspace import WORKSPACE, recommend, settings, workspace

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIVE = "Triton: debug compile (Python + C++)"
REPLAY = "Triton: replay pass"
FIRST = "Triton: silu to its first C++ stop"  # what F5 does in a new window
OPEN_FILE = "Triton: the open file, else silu, to its first C++ stop"  # the same, with our extension
VSIX = ".vscode/triton-gdb.vsix"
PRESET = f"preset-of-{GROUP}"  # sorts before GROUP: VSCode's F5 starts the first configuration
PICKER = "${command:pickProcess}"


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
        entry.get("forks", False),
    )  # fmt: skip
    return dialects.written(what, kind, machine)


def session(machine: Machine, kind: str) -> dict[str, Any]:
    """The session that a stopped process requests from VSCode; attach/session.py fills in the braces.

    The commands of gdb have none: our extension starts gdb before the program has reached a pass.
    """
    commands = ["break-pass" if kind in (GDB, DAP) else "break-pass {pass} {kernel}"]
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


def runnable(entries: list[dict[str, Any]], kind: str, there: set[str]) -> list[dict[str, Any]]:
    """The configurations whose extension is installed, also that of the native session that they request."""

    def runs(entry: dict[str, Any]) -> bool:
        types = {entry["type"], *([kind] if "TRACING_STOP_SESSION" in entry.get("env", {}) else [])}
        return {EXTENSIONS[one] for one in types} <= there

    return [entry for entry in entries if runs(entry)]


def with_picks(launch: dict[str, Any], machine: Machine, ours: bool) -> dict[str, Any]:
    """The template with inputs that our extension answers, if it is installed; else they are typed."""
    for one in launch["inputs"]:
        picks = one.pop("picks", None)
        if ours and picks:
            started_by = {"python": machine.python, "cwd": str(machine.root)}
            asked = {**picks, **started_by, "description": one["description"]}
            one.update({"type": "command", "command": "triton-gdb.pick", "args": asked})
            for key in ("description", "default"):
                del one[key]
    if ours:
        first, second, *rest = launch["configurations"]
        assert (first["name"], second["name"]) == (FIRST, OPEN_FILE)
        launch["configurations"] = [words(second, {"${file}": "${input:triton-open-file}"}), *rest]
    used = json.dumps(launch["configurations"])
    asked_for = [one for one in launch["inputs"] if f"${{input:{one['id']}}}" in used]
    return launch | {"inputs": asked_for}


def generate(
    files: Files, machine: Machine, known: dict[str, Any], kind: str, there: set[str] | None = None
) -> list[dict[str, Any]]:
    """Compute every file; return the launch configurations.

    there -- the installed extensions; None: no editor is installed here, so nothing is left out
    """
    known = known | {"@OURS@": "" if there is not None and OURS not in there else OURS}
    launch, tasks = template("launch.json.in", known), template("tasks.json.in", known)
    launch = with_picks(launch, machine, there is not None and OURS in there)
    entries = configurations(launch["configurations"], machine, kind, known["@CASES@"])
    entries = entries if there is None else runnable(entries, kind, there)

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
    return entries


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
        written = write(options, Path.home())
    except jsonc.Malformed as error:
        return refused(Problem(str(error), "correct it there; no file was changed"))
    except Problem as problem:
        return refused(problem)
    for path in written.changed:
        print(f"vscode: wrote {path}")
    if not written.changed:
        print("vscode: nothing to do: every file is up to date")
    for line in written.summary:
        print(f"vscode: {line}", flush=True)
    for line in written.lacking:
        print(f"vscode: {line}", file=sys.stderr)
    return 0


def refused(problem: Problem) -> int:
    print(f"vscode: {problem}\n  {problem.remedy}", file=sys.stderr)
    return 2


@dataclass(frozen=True)
class Written:
    """What `make vscode` did, and how F5 works now."""

    changed: list[Path]
    summary: list[str]  # what F5 does, and what this machine lacks
    lacking: list[str]  # what is to be installed into the detected editor, and a debugger


def write(options: argparse.Namespace, home: Path) -> Written:
    """Write the files and install our extension."""
    machine, known = facts(ROOT, options.folder, options.venv, options.toolchain)
    kind = options.debugger or debugger(home, machine.gdb)
    if kind == DAP and gdb_with_amx.version(machine.gdb) < DAP_SINCE:
        reason = f"{machine.gdb or 'no gdb'} has no debug adapter, which came with gdb {DAP_SINCE}"
        raise Problem(reason, "name a newer one in GDB, or take another: --debugger cppdbg")
    files = Files(options.folder)
    entries = generate(files, machine, known, kind)  # first, or a malformed file is refused too late
    changed = extension(options.folder)
    messages = []
    native = bool(machine.gdb) or kind != GDB
    if not native:
        messages.append("missing: gdb, so only Python will stop; `make doctor` names the package")
    if editor_there(home):
        refused = install_ours(options.folder / VSIX, HERE / "extension/package.json", home)
        there = set(installed_extensions(home))
        messages += [f"missing: {OURS}: {refused}"] if refused and OURS not in there else []
        entries = generate(files, machine, known, kind, there | ({OURS} if kind == DAP else set()))
        messages += lacking(["debugpy", kind], home)
    for wanted, name in ((options.live, LIVE), (options.replay, REPLAY)):
        if wanted:
            entry = next((entry for entry in entries if entry["name"] == name), None)
            if entry is None:
                raise Problem(f"VSCode cannot run {name}", "\n  ".join(messages))
            entries = [preset(entry, wanted, options.arguments), *entries]
            add_preset(files, entries[0])
    folder = options.folder.resolve()
    lines = [summary.f5(folder / WORKSPACE, next(iter(entries), None), native=native)]
    lines += summary.missing_source(bool(known["@TRITON@"]))
    lines += summary.missing_editor(kind, folder / VSIX, home)
    return Written([*changed, *files.write()], lines, messages)


def extension(folder: Path) -> list[Path]:
    """Pack our extension; return the file if it changed."""
    shutil.rmtree(folder / ".vscode/extensions/triton-gdb", ignore_errors=True)  # of an earlier version
    path, content = folder / VSIX, packed(HERE / "extension")
    if path.exists() and path.read_bytes() == content:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return [path]


def add_preset(files: Files, entry: dict[str, Any]) -> None:
    # one at a time: VSCode starts the first one if the previously chosen one no longer exists
    def change(text: str) -> str:
        return jsonc.with_items(text, "configurations", grouped(PRESET, f"{GROUP}-preset"), [entry])

    files.edit(".vscode/launch.json", change, {})


if __name__ == "__main__":
    sys.exit(main())
