"""Fixtures of the debugger tests: the folder of generated files, gdb's index, and the reasons for skips."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from debugger.editor import ROOT, generated
from debugger.native import lldb_dap
from recorded.kernels import record

from tracing.attach import gdb_with_amx
from tracing.environment import compiled_parts, stops
from tracing.native.file_lock import locked

PROGRAMS = Path(__file__).parent / "programs"


def gdb_with_dap() -> str:
    """A gdb of version 14 or later: the machine's, or the one that GDB_DAP names."""
    for name in filter(None, (os.environ.get("GDB_DAP"), "gdb")):
        asked = [name, "-nx", "-batch", "-ex", "python print(int(gdb.VERSION.split('.')[0]) >= 14)"]
        if shutil.which(name) and "True" in subprocess.run(asked, capture_output=True, text=True).stdout:
            return name
    return ""


def gdb_for(kind: str) -> str:
    """The gdb that a kind of configuration names; the test is skipped where its debugger is not there."""
    if kind == "lldb-dap" and not lldb_dap():
        pytest.skip("lldb-dap, LLVM's debug adapter, is not installed: Debian's package lldb-19, or later")
    if kind in ("cppdbg", "lldb-dap"):
        return "gdb"
    gdb_path = gdb_with_dap()
    if not gdb_path:
        pytest.skip("no gdb of version 14 or later, which has a debug adapter; GDB_DAP can name one")
    return gdb_path


def gdb_that_calls(kind: str) -> str:
    """The gdb of `gdb_for`; the test is skipped where it cannot call functions of a process, by trying it."""
    gdb_path = gdb_for(kind)
    if kind != "lldb-dap" and (said := refused_call(gdb_path)):
        pytest.skip(f"{gdb_path} cannot call functions of a process here: {said}; `make doctor` says more")
    return gdb_path


@cache
def refused_call(gdb_path: str) -> str:
    """What gdb says when it fails to call a function, started as commands and configurations start it."""
    return gdb_with_amx.refused_call(gdb_with_amx.able_to_call(gdb_path, compiled_parts.cache()))


@pytest.fixture(scope="session", autouse=True)
def gdb() -> str:
    gdb_path = shutil.which("gdb")
    if gdb_path is None:
        pytest.skip("gdb is not installed, so nothing can stop in C++")
    return gdb_path


@pytest.fixture(scope="session")
def index(gdb: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the symbol index, which the first of these tests of all workers makes."""
    import triton

    library = Path(triton.__file__).parent / "_C/libtriton.so"
    worker = tmp_path_factory.getbasetemp()
    common = worker.parent if "PYTEST_XDIST_WORKER" in os.environ else worker
    cache = Path(os.environ.get("GDB_INDEX", common / "gdb-index"))
    cache.mkdir(exist_ok=True)
    with locked(cache / "lock", seconds=300):
        compiled_parts.cache().mkdir(parents=True, exist_ok=True)
        parts = cache / compiled_parts.cache().parent.name  # compiled for all tests
        if not parts.exists():
            parts.symlink_to(compiled_parts.cache().parent)
        command = [sys.executable, "-m", "vscode.index_symbols", str(library)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": str(cache)}, check=True)
    return cache


@pytest.fixture(scope="module", autouse=True)
def indexed(index: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(index))
        yield


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the passes of one kernel, softmax."""
    return record(tmp_path_factory.mktemp("runs"), "softmax").path


@pytest.fixture
def shared() -> Iterator[Path]:
    """The folder that the processes of one debugged program share."""
    folder = stops.stop_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture(scope="session")
def launch(folder: Path) -> dict[str, Any]:
    return generated(folder, "--debugger", "cppdbg")
