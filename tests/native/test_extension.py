"""A C++ file is compiled once; a compile that failed is reported, and repeated by another compiler only."""

from __future__ import annotations

import os
import shutil
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

    good = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert good is not None
    compiler = Path(os.environ["CXX"])
    compiler.write_text(f'#!/bin/sh\nexec {good} "$@"\n')
    assert extension_of(source).answer == 42
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
