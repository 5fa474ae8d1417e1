"""Extensions of VSCode: ours is packed and installed, and what cannot run without one is left out."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import ROOT, make_vscode
from recorded.kernels import record

extensions, generate, jsonc, recorded, summary, vsix = map(
    importlib.import_module,
    (f"vscode.{name}" for name in ("extensions", "generate", "jsonc", "recorded", "summary", "vsix")),
)
OURS = ROOT / "vscode/extension"
# an editor whose extensions are the lines of a file
CODE = """#!/bin/sh
case $1 in
--list-extensions) cat {list} ;;
--install-extension) test -s "$2" && echo debug-triton.triton-gdb@9 >> {list} ;;
esac
"""
Made = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture
def editor(tmp_path: Path) -> Path:
    """The file with the extensions of an editor, `code`, which is the only one on the path."""
    listed = tmp_path / "extensions"
    listed.write_text("")
    for name, text in {"code": CODE.format(list=listed), "gdb": "#!/bin/sh\necho GNU gdb $VERSION\n"}.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return listed


def made(editor: Path, there: str, gdb: str) -> Made:
    editor.write_text(there)
    path = f"{editor.parent / 'bin'}:/usr/bin:/bin"
    done = make_vscode(editor.parent, PATH=path, GDB=str(editor.parent / "bin/gdb"), VERSION=gdb)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = jsonc.read((editor.parent / ".vscode/launch.json").read_text())
    return done, read


def test_a_packed_extension_has_the_parts_that_vscode_reads() -> None:
    archive = zipfile.ZipFile(io.BytesIO(vsix.packed(OURS)))
    package = json.loads((OURS / "package.json").read_text())
    identity = ElementTree.fromstring(archive.read("extension.vsixmanifest"))[0][0].attrib
    types = ElementTree.fromstring(archive.read("[Content_Types].xml"))

    assert {name: identity[name.title()] for name in ("version", "publisher")} == {
        name: package[name] for name in ("version", "publisher")
    }
    assert identity["Id"] == package["name"] and archive.read("extension/extension.js")
    ends = {Path(name).suffix for name in archive.namelist() if name != "[Content_Types].xml"}
    assert {one.attrib["Extension"] for one in types} >= ends
    assert vsix.packed(OURS) == vsix.packed(OURS)


def test_our_extension_is_installed_and_f5_debugs_the_open_file(editor: Path) -> None:
    done, launch = made(editor, "ms-python.debugpy@2026.6.0\n", "16.3")
    first = min(launch["configurations"], key=lambda one: one["presentation"]["group"])
    inputs = {one["id"]: one for one in launch["inputs"]}

    assert "triton-gdb@9" in editor.read_text() and done.stderr == ""
    assert first["name"] == generate.OPEN_FILE and "${input:triton-open-file}" in first["args"]
    assert inputs["triton-open-file"]["command"] == "triton-gdb.pick"
    assert inputs["triton-replay-pass"]["args"]["what"] == "pass"


def test_a_task_opens_the_report_with_the_command_and_the_settings_of_our_extension(editor: Path) -> None:
    made(editor, "ms-python.debugpy@2026.6.0\n", "16.3")
    tasks = jsonc.read((editor.parent / ".vscode/tasks.json").read_text())["tasks"]
    settings = jsonc.read((editor.parent / ".vscode/settings.json").read_text())
    contributed = json.loads((OURS / "package.json").read_text())["contributes"]

    (opens,) = [one for one in tasks if one["label"] == "triton: open report"]
    assert [f"${{command:{one['command']}}}" for one in contributed["commands"]] == opens["args"][-1:]
    assert settings["triton-gdb.root"] == str(ROOT)
    assert contributed["configuration"]["properties"].keys() <= settings.keys()


def test_what_needs_an_extension_that_is_not_installed_is_left_out_and_it_is_named(editor: Path) -> None:
    done, launch = made(editor, "ms-python.debugpy@2026.6.0\n", "13.1")

    assert {one["type"] for one in launch["configurations"]} == {"debugpy"}
    assert not any("TRACING_STOP_SESSION" in one.get("env", {}) for one in launch["configurations"])
    assert "`code --install-extension ms-vscode.cpptools`" in done.stderr and ".vsix" in done.stderr


def test_what_no_longer_applies_is_removed(editor: Path) -> None:
    made(editor, "ms-python.debugpy@1\nms-vscode.cpptools@1\n", "13.1")
    workspace, recommended = (
        editor.parent / "debug-triton.code-workspace",
        editor.parent / ".vscode/extensions.json",
    )
    before = recommended.read_text()
    (editor.parent / "llvm-project").mkdir()  # of a download that failed
    known = jsonc.read(workspace.read_text())
    known["folders"].append({"path": str(editor.parent / "llvm-project")})
    workspace.write_text(json.dumps(known))
    made(editor, "ms-python.debugpy@1\n", "16.3")

    assert "cpptools" in before and "cpptools" not in recommended.read_text()
    assert "llvm-project" not in workspace.read_text() and "triton/backends" in workspace.read_text()


def test_quick_picks_list_recorded_kernels_and_passes(tmp_path: Path) -> None:
    run = record(tmp_path, "softmax").path
    words = [sys.executable, "-m", "vscode.recorded"]
    said = {}
    for what in ("kernel", "kernel-name", "pass", "pass-name"):
        done = subprocess.run([*words, what, str(run), "softmax"], cwd=ROOT, capture_output=True, text=True)
        said[what] = [one["label"] for one in json.loads(done.stdout)]

    assert said["kernel"] == said["kernel-name"] == ["softmax"]
    assert {"canonicalize#1", "canonicalize#2", "tritongpu-coalesce"} <= set(said["pass"])
    assert "canonicalize" in said["pass-name"] and "#" not in "".join(said["pass-name"])


def test_a_lacking_extension_is_named_with_the_command_that_installs_it(
    editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.write_text("Vadimcn.vscode-lldb\n")
    (editor.parent / ".vscode/extensions/ms-vscode.cpptools-1.34.0-linux-x64").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{editor.parent / 'bin'}{os.pathsep}/usr/bin:/bin")

    (line,) = extensions.lacking(["cppdbg", "lldb", "debugpy"], editor.parent)

    assert "`code --install-extension ms-python.debugpy`" in line and ".vsix" in line


@pytest.mark.parametrize(
    ("kind", "installed"),
    [
        ("cppdbg", ["ms-python.debugpy", "ms-vscode.cpptools"]),
        ("triton-gdb", ["ms-python.debugpy"]),  # `make vscode` installs ours
    ],
)
def test_without_an_editor_it_says_what_to_type_when_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, installed: list[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    first, *steps = summary.missing_editor(kind, tmp_path / "ours.vsix", tmp_path)

    assert first.startswith("missing: VSCode, which was not detected here")
    typed = [re.findall(r"(\d) of (\d): `([^`]+)`", step) for step in steps]
    commands = [*(f"code --install-extension {name}" for name in installed), "make vscode"]
    count = str(len(commands))
    assert typed == [[(str(number), count, command)] for number, command in enumerate(commands, 1)]
    assert str(tmp_path / "ours.vsix") in steps[-1]


@pytest.mark.parametrize("native", [True, False])
def test_f5_on_a_replayed_pass_stops_in_its_c_plus_plus_if_there_is_a_debugger(native: bool) -> None:
    replays = {"name": "Triton: a pass of a kernel", "type": "gdb", "args": ["-m", "tracing", "execute"]}

    said = summary.f5(Path("x"), replays, native=native)

    assert said.endswith("and stops in the C++ of that pass" if native else "and stops in Python only")


def test_what_f5_does_is_printed_and_that_the_source_of_the_wheel_is_missing(editor: Path) -> None:
    with_gdb, _ = made(editor, "ms-python.debugpy@2026.6.0\n", "16.3")
    without, _ = made(editor, "ms-python.debugpy@2026.6.0\n", "13.1")
    workspace = editor.parent / "debug-triton.code-workspace"

    assert f"F5 in {workspace} runs the Python file in the editor, or the case silu" in with_gdb.stdout
    assert "stops in the C++ of the pass tritongpu-coalesce" in with_gdb.stdout
    assert "and stops in Python only" in without.stdout
    assert without.stdout.count("`make venv SOURCE=1`") == 1
