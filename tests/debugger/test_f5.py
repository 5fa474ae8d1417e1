"""F5 stops in Triton's compiler.py, then in a C++ pass, in whichever process compiles."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from debugger.conftest import PROGRAMS, gdb_for, gdb_that_calls
from debugger.dap import Message
from debugger.editor import Editor, chosen, generated
from debugger.native import KINDS, WAIT, stopped

COALESCE = "mlir::triton::gpu::CoalescePass::runOnOperation"
OPEN_FILE = "Triton: debug compile of the open file (Python + C++)"


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
    adapter, stop = editor.stops.get(timeout=WAIT)
    frame = adapter.frames(stop)[0]
    asked = {"expression": "__import__('os').getpid()", "frameId": frame["id"], "context": "repl"}
    pid = int(adapter.request("evaluate", **asked)["result"])
    adapter.request("continue", threadId=stop["threadId"])
    return frame, pid


@pytest.mark.parametrize("program", ["forked.py", pytest.param("sidecar.py", marks=pytest.mark.soak)])
def test_the_process_that_compiles_stops_in_python_and_then_in_the_pass(
    launch: dict[str, Any], program: str
) -> None:
    with pressed(launch, program) as editor:
        frame, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        stop = stopped(native)

    assert (frame["source"]["path"], frame["line"]) == python_line()
    assert native["processId"] == pid
    assert stop.function == COALESCE
    assert stop.file.endswith("Coalesce.cpp") and stop.line > 1


def test_a_pass_of_mlir_is_stopped_in_too_and_the_commands_say_where(launch: dict[str, Any]) -> None:
    gdb_that_calls("cppdbg")
    with pressed(launch, "add.py", **{"pass": "canonicalize"}) as editor:
        for _ in ("silu", "add"):
            _, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        stop = stopped(native, "pass-info", "print-op", "py-where")
    info, operation, python = stop.said

    assert native["processId"] == pid and native["name"] == f"C++ canonicalize of add (pid {pid})"
    assert stop.function.startswith("(anonymous namespace)::Canonicalizer::runOnOperation")
    assert re.search(r"position .*\d of \d+ in stage ttgir\n", info)
    assert "kernel    add\n" in info and "num_warps=4" in info
    assert "tt.func public @add" in operation and "ttg.num-warps" in operation
    assert python.splitlines()[0].split()[1] == "make_ttgir"


def test_torch_and_triton_are_imported_untraced_and_their_functions_are_traced(
    launch: dict[str, Any],
) -> None:
    path, line = python_line()
    imported = 1 + Path(path).read_text().splitlines().index("import functools")
    editor = Editor(chosen(launch, OPEN_FILE, PROGRAMS / "add.py"), {path: [imported, line]})
    try:
        first, _ = python_stop(editor)
    finally:
        editor.close()

    assert first["line"] == line


@pytest.mark.parametrize("with_breakpoint", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_compile_is_traced_from_the_stop_on_and_before_if_a_breakpoint_is_set(
    launch: dict[str, Any], capfd: pytest.CaptureFixture[str], with_breakpoint: bool
) -> None:
    configuration = chosen(launch, OPEN_FILE, PROGRAMS / "traced.py")
    configuration["env"]["TRACING_STOP_SECONDS"] = "0.1"
    never = {str(PROGRAMS / "forked.py"): [1]}
    editor = Editor(configuration, never if with_breakpoint else {})
    try:
        assert editor.ended.wait(WAIT)
    finally:
        editor.close()

    by_calls = sys.version_info < (3, 12)  # later debugpy is called where a breakpoint is only
    traced = [by_calls, by_calls and with_breakpoint, by_calls, by_calls]
    assert f"traced {traced}\n" in capfd.readouterr().out


@pytest.mark.parametrize("kind", ["triton-gdb", "lldb-dap"])
def test_a_debuggers_own_adapter_stops_in_the_pass(tmp_path: Path, kind: str) -> None:
    launch = generated(tmp_path, "--debugger", kind, gdb=gdb_for(kind))
    with pressed(launch, "add.py") as editor:
        for _ in ("silu", "add"):
            _, pid = python_stop(editor)
        native = editor.natives.get(timeout=WAIT)
        stop = stopped(native, early=editor.early)

    assert native["pid"] == pid
    assert any(COALESCE in name for name in stop.inside)
    assert stop.file.endswith("Coalesce.cpp")


@pytest.mark.parametrize("kind", KINDS)
def test_replay_pass_stops_in_a_recorded_pass_without_a_python_session(
    recorded_run: Path, tmp_path: Path, kind: str
) -> None:
    inputs = {"run": str(recorded_run), "replay-kernel": "softmax", "replay-pass": "tritongpu-coalesce"}
    launch = generated(tmp_path, "--debugger", kind, gdb=gdb_for(kind))
    entry = chosen(launch, "Triton: replay pass", Path(), **inputs)
    stop = stopped(entry)

    assert any(COALESCE in name for name in stop.inside)
    assert stop.file.endswith("Coalesce.cpp")
