"""One F5: a Python stop in Triton's compiler.py, then a C++ stop in the pass, wherever it compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from debugger.conftest import PROGRAMS, gdb_with_dap
from debugger.dap import Adapter, Message
from debugger.editor import Editor, chosen, generated
from debugger.mi import Gdb

OPEN_FILE = "Triton: debug compile of the open file (Python + C++)"
NO_DAP = "no gdb of version 14 or later, which has a debug adapter; GDB_DAP can name one"
WAIT = 150  # seconds: Inductor's sidecar imports torch twice under a Python debugger


def python_line() -> tuple[str, int]:
    """Where the NVIDIA backend runs its passes of stage ttgir."""
    from triton.backends.nvidia import compiler

    path = str(compiler.__file__)
    lines = Path(path).read_text().splitlines()
    return path, 1 + next(i for i, line in enumerate(lines) if "pm.run(" in line and "make_ttgir" in line)


@contextmanager
def pressed(launch: dict[str, Any], program: str, **inputs: str) -> Iterator[Editor]:
    path, line = python_line()
    configuration = chosen(launch, OPEN_FILE, PROGRAMS / program, **inputs)
    editor = Editor(configuration, {path: [line]})
    try:
        yield editor
    finally:
        editor.close()


def python_stop(editor: Editor) -> tuple[Message, int]:
    """The innermost frame of the next Python stop and its process; the process goes on."""
    adapter, stopped = editor.stops.get(timeout=WAIT)
    frame = adapter.frames(stopped)[0]
    asked = {"expression": "__import__('os').getpid()", "frameId": frame["id"], "context": "repl"}
    pid = int(adapter.request("evaluate", **asked)["result"])
    adapter.request("continue", threadId=stopped["threadId"])
    return frame, pid


@pytest.mark.parametrize("program", ["forked.py", "sidecar.py"])
def test_the_process_that_compiles_stops_in_python_and_then_in_the_pass(
    launch: dict[str, Any], program: str
) -> None:
    with pressed(launch, program) as editor:
        frame, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        gdb = Gdb(native)
        gdb.run(f"-target-attach {native['processId']}")
        gdb.run("-exec-continue")
        stop = gdb.stopped()
        gdb.close()

    assert (frame["source"]["path"], frame["line"]) == python_line()
    assert native["processId"] == pid
    assert stop["func"] == "mlir::triton::gpu::CoalescePass::runOnOperation"
    assert stop["file"].endswith("Coalesce.cpp") and int(stop["line"]) > 1


def test_a_pass_of_mlir_is_stopped_in_too_and_the_commands_say_where(launch: dict[str, Any]) -> None:
    with pressed(launch, "add.py", **{"pass": "canonicalize"}) as editor:
        for _ in ("silu", "add"):
            _, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        gdb = Gdb(native)
        gdb.run(f"-target-attach {native['processId']}")
        gdb.run("-exec-continue")
        stop = gdb.stopped()
        said = {name: gdb.console(name) for name in ("pass-info", "print-op", "py-where")}
        gdb.close()

    assert native["processId"] == pid and native["name"] == f"C++ canonicalize of add (pid {pid})"
    assert stop["func"].startswith("(anonymous namespace)::Canonicalizer::runOnOperation")
    assert re.search(r"place .*\d of \d+ in stage ttgir\n", said["pass-info"])
    assert "kernel    add\n" in said["pass-info"] and "num_warps=4" in said["pass-info"]
    assert "tt.func public @add" in said["print-op"] and "ttg.num-warps" in said["print-op"]
    assert said["py-where"].splitlines()[0].split()[1] == "make_ttgir"


def test_gdbs_own_adapter_stops_in_the_pass(folder: Path, tmp_path: Path) -> None:
    gdb = gdb_with_dap()
    if not gdb:
        pytest.skip(NO_DAP)
    launch = generated(tmp_path, "--debugger", "triton-gdb", gdb=gdb)
    with pressed(launch, "add.py") as editor:
        for _ in ("silu", "add"):
            _, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        commands = [word for line in native["commands"] for word in ("-iex", line)]
        adapter = Adapter.spawned(gdb, "-nx", "-q", *commands, "-i", "dap")
        try:
            adapter.start(native, {})
            attached = adapter.event("stopped", WAIT)
            adapter.request("continue", threadId=attached.get("threadId", 1))
            stopped = adapter.event("stopped", WAIT)
            frame = adapter.frames(stopped)[0]
        finally:
            adapter.close()

    assert native["pid"] == pid and stopped["reason"] == "breakpoint"
    assert frame["name"].startswith("mlir::triton::gpu::CoalescePass::runOnOperation")
    assert frame["source"]["path"].endswith("Coalesce.cpp")


@pytest.mark.parametrize("kind", ["cppdbg", "triton-gdb"])
def test_replay_pass_stops_in_a_recorded_pass_without_a_python_session(
    recorded_run: Path, tmp_path: Path, kind: str
) -> None:
    gdb = gdb_with_dap() if kind == "triton-gdb" else "gdb"
    if not gdb:
        pytest.skip(NO_DAP)
    entry = chosen(
        generated(tmp_path, "--debugger", kind, gdb=gdb),
        "Triton: replay pass",
        Path(),
        **{"run": str(recorded_run), "replay-kernel": "softmax", "replay-pass": "tritongpu-coalesce"},
    )
    function, file = replayed_by_mi(entry) if kind == "cppdbg" else replayed_by_dap(entry)

    assert function.startswith("mlir::triton::gpu::CoalescePass::runOnOperation")
    assert file.endswith("Coalesce.cpp")


def replayed_by_mi(entry: Message) -> tuple[str, str]:
    gdb = Gdb(entry)
    gdb.run(f"-file-exec-and-symbols {entry['program']}")
    gdb.run(f"-exec-arguments {' '.join(entry['args'])}")
    gdb.run("-exec-run")
    stop = gdb.stopped()
    gdb.close()
    return stop["func"], stop["file"]


def replayed_by_dap(entry: Message) -> tuple[str, str]:
    commands = [word for line in entry["commands"] for word in ("-iex", line)]
    adapter = Adapter.spawned(entry["gdb"], "-nx", "-q", *commands, "-i", "dap")
    try:
        adapter.start(entry, {})
        frame = adapter.frames(adapter.event("stopped", WAIT))[0]
    finally:
        adapter.close()
    return frame["name"], frame["source"]["path"]
