"""The files of `make vscode`: valid for each debugger, for this machine, and with a user's entries kept."""

from __future__ import annotations

import copy
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, make_vscode
from documents.launch_json_keys import faults
from hypothesis import given, settings
from hypothesis import strategies as st

from tracing.attach import gdb_with_amx

dialects, installed_tools, generate, index_symbols, jsonc = map(
    importlib.import_module,
    (f"vscode.{name}" for name in ("dialects", "installation", "generate", "index_symbols", "jsonc")),
)
KINDS = dialects.KINDS
USERS = """{
    // Use IntelliSense to learn about possible attributes.
    "version": "0.2.0",
    "configurations": [
        { "name": "mine", "type": "debugpy", "request": "launch", "program": "a.py", }, // first
        /* and */ { "name": "Triton: mine too", "type": "cppdbg", "request": "launch", "program": "a" },
    ],
}
"""


def make(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return make_vscode(folder, *options, **{"GDB": gdb_of(folder.parent, "16.3"), **variables})


def gdb_of(folder: Path, version: str) -> str:
    """A program that prints gdb's version, which is all that `make vscode` reads of gdb."""
    path = folder / f"gdb-{version}"
    path.write_text(f"#!/bin/sh\necho 'GNU gdb (Debian {version}-1) {version}'\n")
    path.chmod(0o755)
    return str(path)


def launch(folder: Path) -> list[dict[str, Any]]:
    read: dict[str, Any] = jsonc.read((folder / ".vscode/launch.json").read_text())
    configurations: list[dict[str, Any]] = read["configurations"]
    return configurations


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    done = make(folder, "--debugger", request.param)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_configuration_has_only_keys_that_its_debugger_documents(made: Path) -> None:
    session = json.loads((made / ".vscode/triton-session.json").read_text())

    assert [(one["name"], faults(one)) for one in [*launch(made), session] if faults(one)] == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"justMyCod": False}, "justMyCod is unknown"),
        ({"console": "terminal"}, "console is 'terminal'"),
        ({"justMyCode": "false"}, "justMyCode is 'false'"),
        ({"env": {"A": 1}}, "env.A is 1"),
        ({"program": None}, "program or module or code is missing"),
    ],
)
def test_a_wrong_key_or_type_or_a_missing_program_is_a_fault(change: dict[str, Any], fault: str) -> None:
    entry = {"name": "n", "type": "debugpy", "request": "launch", "program": "a.py", **change}
    reported = faults({key: value for key, value in entry.items() if value is not None})

    assert len(reported) == 1 and fault in reported[0]


def test_a_misspelt_key_inside_of_a_setup_command_is_a_fault() -> None:
    entry = {"name": "n", "type": "cppdbg", "request": "attach", "program": "p"}

    assert faults(entry | {"setupCommands": [{"txet": "run"}]}) == [".setupCommands[0].txet is unknown"]


def test_f5_has_a_python_stop_a_native_session_and_no_process_picker(made: Path) -> None:
    entry = next(one for one in launch(made) if one["name"] == generate.LIVE)
    session = json.loads(Path(entry["env"]["TRACING_STOP_SESSION"]).read_text())

    assert entry["env"]["TRACING_STOP"].count("${input:") == 3 and entry["justMyCode"] is False
    assert session.get("processId", session.get("pid")) == "{pid}"
    assert "pickProcess" not in json.dumps(session)


def test_f5_needs_no_interpreter_that_is_selected_in_vscode(made: Path) -> None:
    for entry in (one for one in launch(made) if one["type"] == "debugpy"):
        assert entry["debugAdapterPython"] == entry["debugLauncherPython"] == entry["python"]


def test_every_named_variable_and_folder_exists(made: Path) -> None:
    text = (made / ".vscode/launch.json").read_text()
    read = jsonc.read(text)
    folders = jsonc.read((made / "debug-triton.code-workspace").read_text())["folders"]

    assert set(re.findall(r"\$\{input:([\w-]+)\}", text)) <= {one["id"] for one in read["inputs"]}
    assert all((made / folder["path"]).is_dir() for folder in folders)
    assert "@" not in re.sub(r"[\w.]+@[\w.]+", "", text)


def test_a_task_uses_only_inputs_that_its_own_file_defines(made: Path) -> None:
    text = (made / ".vscode/tasks.json").read_text()
    asked = set(re.findall(r"\$\{input:([\w-]+)\}", text))

    assert asked == {one["id"] for one in jsonc.read(text)["inputs"]} == {"triton-case"}


def test_each_case_has_a_configuration(made: Path) -> None:
    names = {one["name"] for one in launch(made)}

    assert {f"Triton: debug case {path.stem} (Python)" for path in (ROOT / "cases").glob("*.py")} <= names


def test_a_second_run_changes_nothing(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    kind = made.name.rstrip("0123456789")

    assert "nothing to do" in make(made, "--debugger", kind).stdout
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before


def test_a_users_entries_and_comments_are_kept(tmp_path: Path) -> None:
    path = tmp_path / ".vscode/launch.json"
    path.parent.mkdir()
    path.write_text(USERS)
    make(tmp_path)
    make(tmp_path)
    text = path.read_text()

    assert all(line.rstrip(",") in text for line in USERS.splitlines()[:7])
    assert [one["name"] for one in launch(tmp_path)][:2] == ["mine", "Triton: mine too"]
    assert sum(one["name"] == generate.LIVE for one in launch(tmp_path)) == 1


def test_a_users_setting_overrides_ours(tmp_path: Path) -> None:
    path = tmp_path / ".vscode/settings.json"
    path.parent.mkdir()
    path.write_text('{"python.defaultInterpreterPath": "/mine", "a": 1 /* last */ }')
    make(tmp_path)
    read = jsonc.read(path.read_text())

    assert read["python.defaultInterpreterPath"] == "/mine" and "files.watcherExclude" in read
    assert "/* last */" in path.read_text()


def test_a_file_that_is_no_json_is_named_with_its_line_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / ".vscode/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "a": 1\n  "b": 2\n}')
    done = make(tmp_path)

    assert done.returncode == 2 and "settings.json, line 3: a comma or }" in done.stderr
    assert [one.name for one in tmp_path.rglob("*.*") if one.is_file() and "gdb" not in one.name] == [
        "settings.json"
    ]


def test_an_environment_without_triton_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vscode.generate", "--venv", str(tmp_path / "none")]
    done = subprocess.run([*command, "--folder", str(tmp_path)], capture_output=True, text=True)

    assert done.returncode == 2 and "has no Triton" in done.stderr and "make venv" in done.stderr


ODD_CASE = 'silu.py:text=/a b/it\'s "here" \\n'


def test_f5_in_a_new_window_stops_in_c_without_a_question(made: Path) -> None:
    entries = launch(made)
    first = min(entries, key=lambda one: one["presentation"]["group"])  # as VSCode sorts

    assert first["name"] == generate.FIRST
    assert (
        first["args"] == ["execute", "silu"] and first["env"]["TRACING_STOP"] == "*:ttgir:tritongpu-coalesce"
    )
    assert "${input" not in json.dumps(first) and "${file" not in json.dumps(first)


def test_f5_after_a_preset_was_written_starts_it(tmp_path: Path) -> None:
    for name in ("cse", "tritongpu-coalesce"):
        make(tmp_path, "--live", f"add:ttgir:{name}", "--", "silu")
    first = min(launch(tmp_path), key=lambda one: one["presentation"]["group"])

    assert first["name"] == "Triton: tritongpu-coalesce of add (ttgir)"
    assert [one["name"] for one in launch(tmp_path)].count("Triton: cse of add (ttgir)") == 0


def test_a_preset_whose_run_is_gone_is_removed(tmp_path: Path) -> None:
    run = tmp_path / "runs/silu-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    make(tmp_path, "--replay", "add:ttgir:cse", "--", str(run), "--kernel", "ab", "--pass", "3")
    there = [one["name"] for one in launch(tmp_path)]
    (run / "run.json").unlink()
    make(tmp_path)

    assert "Triton: cse of add (ttgir)" in there
    assert "Triton: cse of add (ttgir)" not in [one["name"] for one in launch(tmp_path)]


def test_a_preset_names_kernel_stage_and_pass_and_asks_for_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        done = make(tmp_path, "--live", "add:ttgir:cse", "--", ODD_CASE, "--target", "sm_90")
        assert done.returncode == 0, done.stderr
    presets = [one for one in launch(tmp_path) if one["name"] == "Triton: cse of add (ttgir)"]

    assert len(presets) == 1 and faults(presets[0]) == []
    assert presets[0]["env"]["TRACING_STOP"] == "add:ttgir:cse"
    assert presets[0]["args"] == ["execute", ODD_CASE, "--target", "sm_90"]
    assert "${input" not in json.dumps(presets[0])


@pytest.mark.parametrize(
    ("installed", "kind"),
    [
        ([".vscode-server/extensions/ms-vscode.cpptools-1.34.0"], "cppdbg"),
        ([".vscode/extensions/vadimcn.vscode-lldb-1.12.2"], "lldb"),
        ([".vscode/extensions/vadimcn.vscode-lldb-1", ".vscode/extensions/ms-vscode.cpptools-1"], "cppdbg"),
        ([".vscode/extensions/llvm-vs-code-extensions.lldb-dap-0.2.16"], "lldb-dap"),
    ],
)
def test_the_debugger_that_is_installed_is_used(installed: list[str], kind: str, tmp_path: Path) -> None:
    for name in installed:
        (tmp_path / name).mkdir(parents=True)

    assert installed_tools.debugger(tmp_path, "no-gdb") == kind


def test_llvms_opt_is_that_of_the_build_or_else_the_systems_newest(tmp_path: Path) -> None:
    for name in ("llvm-9", "llvm-22", "llvm-22-tools", "mine"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/opt").touch()

    assert installed_tools.llvm_opt(tmp_path, tmp_path) == str(tmp_path / "llvm-22/bin/opt")
    (tmp_path / "llvm.json").write_text(json.dumps({"folder": str(tmp_path / "mine")}))
    assert installed_tools.llvm_opt(tmp_path, tmp_path) == str(tmp_path / "mine/bin/opt")


def test_triton_opt_is_the_built_one_or_else_this_projects(tmp_path: Path) -> None:
    assert installed_tools.triton_opt(tmp_path, Path("p"))[:4] == ["p", "-m", "tracing", "opt"]
    (tmp_path / "build/cmake/bin").mkdir(parents=True)
    (tmp_path / "build/cmake/bin/triton-opt").touch()

    assert installed_tools.triton_opt(tmp_path, Path("p")) == [str(tmp_path / "build/cmake/bin/triton-opt")]


def test_a_gdb_without_dap_is_not_chosen_for_dap(tmp_path: Path) -> None:
    old = gdb_of(tmp_path, "13.1")
    done = make(tmp_path, "--debugger", dialects.DAP, GDB=old)

    assert gdb_with_amx.version(old) == 13 and installed_tools.debugger(tmp_path, old) == dialects.GDB
    assert done.returncode == 2 and "no debug adapter, which came with gdb 14" in done.stderr


def test_without_gdb_it_reports_that_only_python_stops(tmp_path: Path) -> None:
    done = make(tmp_path, "--debugger", dialects.GDB, GDB="no-such-gdb")

    assert done.returncode == 0 and "missing: gdb, so only Python will stop" in done.stderr


def test_the_build_id_is_the_one_that_gdb_keys_its_index_by(tmp_path: Path) -> None:
    library = Path(sys.executable).resolve()
    said = (
        subprocess.run(["file", str(library)], capture_output=True, text=True).stdout
        if shutil.which("file")
        else ""
    )

    if not said:
        pytest.skip("`file` is not installed, which says it independently")
    assert index_symbols.build_id(library) == "".join(re.findall(r"BuildID\[sha1\]=(\w+)", said))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=25)
@given(st.dictionaries(st.text(), VALUES))
def test_json_is_read_like_the_standard_library(value: dict[str, Any]) -> None:
    assert jsonc.read(json.dumps(value, indent=2)) == value
    assert jsonc.read("// c\n" + json.dumps(value) + "/* d */") == value


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(10, 19)), st.booleans())
def test_replacing_items_keeps_the_others_and_is_idempotent(
    kept: list[int], new: list[int], comma: bool
) -> None:
    items = ", ".join(f"/* {i} */ {i}" for i in kept) + ("," if comma and kept else "")
    text = f'{{"a": [{items} // end\n], "b": 1}}'
    once = jsonc.with_items(text, "a", lambda item: item >= 10, new)
    twice = jsonc.with_items(once, "a", lambda item: item >= 10, copy.copy(new))

    assert jsonc.read(once) == {"a": [*kept, *new], "b": 1} and once == twice
    assert once.count("/*") == len(kept) and "// end" in once
