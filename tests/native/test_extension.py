"""A C++ file is compiled once; a compile that failed is reported, and repeated by another compiler only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tracing.environment.compiled_parts import SWITCH
from tracing.native import extension as extensions
from tracing.native.extension import NotCompiledError, extension_of, failure

Compile = Callable[[], ModuleType]
MODULE = """
#include <Python.h>
#include "python_objects.h"
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "answers", nullptr, -1, nullptr};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_answers() {
  PyObject* made = PyModule_Create(&module);
  return PyModule_AddIntConstant(made, "answer", 42) < 0 ? nullptr : made;
}
"""


TWO_PROCESSES = """
import os, sys
from pathlib import Path
from tracing.native.extension import NotCompiledError, extension_of
child = os.fork()
try:
    print(extension_of(Path(sys.argv[1])).answer)
except NotCompiledError as error:
    print(error)
if child:
    os.wait()
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A C++ file, in a process that has neither compiled nor reported anything."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(extensions, "_reported", [])
    file = tmp_path / "answers.cpp"
    file.write_text(MODULE)
    return file


def failing_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that fails, and appends a line to a file for each call."""
    compiler = folder / "bad-c++"
    compiler.write_text(
        f"#!/bin/sh\necho called >> {folder}/calls\necho 'x.cpp:1: error: no concepts' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return folder / "calls"


def slow_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, result: str) -> Path:
    """A compiler that waits for the file `go`, and appends a line to a file for each call.

    result -- what it does then, in shell
    """
    compiler = folder / "slow-c++"
    wait = f"until [ -e {folder}/go ]; do sleep 0.05; done"
    compiler.write_text(f"#!/bin/sh\necho called >> {folder}/calls\n{wait}\n{result}\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return folder / "calls"


def good_compiler() -> str:
    good = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert good is not None
    return good


def printed_by_two_processes(source: Path) -> str:
    command = [sys.executable, "-c", TWO_PROCESSES, str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for _ in range(2):
            assert "compiling answers.cpp" in process.stderr.readline()
        (source.parent / "go").touch()  # both compile, or wait
        return process.communicate()[0]


def message(source: Path) -> str:
    with pytest.raises(NotCompiledError) as raised:
        extension_of(source)
    return str(raised.value)


def test_a_file_is_compiled_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert extension_of(source).answer == 42

    failing_compiler(source.parent, monkeypatch)
    extensions._loaded.cache_clear()  # as in another process
    assert extension_of(source).answer == 42


def test_a_compile_that_failed_is_not_repeated(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = failing_compiler(tmp_path, monkeypatch)

    first, second = message(source), message(source)

    assert "x.cpp:1: error: no concepts" in first
    assert first in second
    assert calls.read_text() == "called\n"
    assert not list(tmp_path.rglob("*.so*[0-9]"))  # no half-written file is left


def test_another_compiler_at_the_same_path_is_tried(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = failing_compiler(tmp_path, monkeypatch)
    message(source)

    compiler = Path(os.environ["CXX"])
    compiler.write_text(f'#!/bin/sh\nexec {good_compiler()} "$@"\n')
    assert extension_of(source).answer == 42
    assert calls.read_text() == "called\n"


def test_two_processes_at_the_same_time_run_the_compiler_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = slow_compiler(tmp_path, monkeypatch, f'exec {good_compiler()} "$@"')

    assert printed_by_two_processes(source) == "42\n42\n"
    assert calls.read_text() == "called\n"


def test_two_processes_at_the_same_time_share_a_failure(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = slow_compiler(tmp_path, monkeypatch, "echo 'x.cpp:1: error: no concepts' >&2; exit 1")

    assert printed_by_two_processes(source).count("x.cpp:1: error: no concepts") == 2
    assert calls.read_text() == "called\n"


def test_the_deletion_that_the_message_names_leads_to_another_attempt(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = failing_compiler(tmp_path, monkeypatch)
    message(source)
    Path(message(source).partition("delete ")[2].partition(" for")[0]).unlink()
    message(source)

    assert calls.read_text() == "called\ncalled\n"


def test_the_first_failure_of_a_process_is_reported_in_one_line(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing_compiler(tmp_path, monkeypatch)
    message(source)
    message(source)

    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    for part in ("error: no concepts", "continues in Python", "C++20 compiler", f"{SWITCH}=0 silences"):
        assert part in lines[0]


def test_a_machine_without_a_compiler_is_reported(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")

    assert message(source) == "no C++ compiler: no-such-compiler not in PATH"
    assert "no-such-compiler not in PATH; recording continues in Python" in capsys.readouterr().err


def test_a_user_who_asks_for_python_is_not_answered(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SWITCH, "0")

    assert message(source) == f"{SWITCH}=0"
    assert capsys.readouterr().err == ""


def test_failure_says_why_a_part_is_not_used(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failure("launches") == ""  # its first use compiles it
    failing_compiler(tmp_path, monkeypatch)
    with pytest.raises(NotCompiledError) as raised:
        extensions._loaded.__wrapped__(extensions._FOLDER / "launches.cpp")
    assert str(raised.value) in failure("launches")
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert failure("launches") == "no C++ compiler: no-such-compiler not in PATH"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_compile_shows_one_line_on_standard_error(
    terminal: bool, source: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)

    extension_of(source)

    shown = capfd.readouterr()
    assert shown.out == ""
    assert "tracing: compiling answers.cpp, once for this torch and Python (some 20 s)" in shown.err
    assert shown.err.count("\n") == 1
    assert ("0:00:0" in shown.err) == terminal
