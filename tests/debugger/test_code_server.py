"""F5 in VSCode itself: code-server in a headless Chromium, with the debugpy extension and ours.

    CODE_SERVER=code-server VSIX=python.vsix:debugpy.vsix GDB_DAP=gdb SCREENSHOTS=docs make soak

VSIX are the extensions that are not ours: ms-python.debugpy, and ms-python.python, on which it depends.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import ROOT, make_vscode
from debugger.browser import CONTROL, SHIFT, Browser
from debugger.conftest import gdb_for
from debugger.test_stop_button import wait_until

from tracing import environment

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
PORT = 8931
PASS = "CoalescePass::runOnOperation"
LIMIT = 400  # seconds, of a machine that others use too
SHIM = '#!/bin/sh\nexec {code} --user-data-dir {home}/data --extensions-dir {home}/extensions "$@"\n'
WORKBENCH = ["--auth", "none", "--bind-addr", f"127.0.0.1:{PORT}"]
QUIET = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
DEBUGGED = (b"vscode.index_symbols", b"tracing\0execute", b"/debugpy/", b"gdb_load.py")


@pytest.fixture(scope="module")
def mark() -> str:
    """A text in the environment of every process that code-server starts."""
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def code_server(tmp_path_factory: pytest.TempPathFactory, mark: str) -> Iterator[Path]:
    """A code-server with the extensions and the files of `make vscode`; its workspace."""
    code, others = shutil.which(os.environ.get("CODE_SERVER", "code-server")), os.environ.get("VSIX", "")
    if not code or not others:
        pytest.skip("no code-server, or no .vsix of debugpy's extension: CODE_SERVER and VSIX can name them")
    home = tmp_path_factory.mktemp("code-server")
    shim = home / "bin/code-server"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(code=code, home=home))
    shim.chmod(0o755)
    for vsix in others.split(os.pathsep):
        subprocess.run([str(shim), "--install-extension", vsix], check=True, capture_output=True)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    done = make_vscode(home / "project", PATH=path, GDB=gdb_for("triton-gdb"))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    own = {**os.environ, "MARK": mark, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([str(shim), *WORKBENCH, *QUIET], env=own, stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        wait_until(listening)
        yield home / "project/debug-triton.code-workspace"
    finally:
        server.terminate()
        server.wait()


def listening() -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


@pytest.fixture
def window(code_server: Path, tmp_path: Path) -> Iterator[Browser]:
    """A fresh window of the workspace, whose extensions are loaded."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no chromium")
    url = f"http://127.0.0.1:{PORT}/?workspace={code_server}"
    window = Browser(chromium, tmp_path, url)
    try:
        window.wait("Outline", "body", LIMIT)
        yield window
        screenshot(window, "end")
    finally:
        window.close()


def debugged(mark: str) -> list[int]:
    """The processes of the debugged program and its debuggers."""
    there = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            mine = f"MARK={mark}".encode() in (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mine and any(part in command for part in DEBUGGED):
            there.append(int(folder.name))
    return there


def press_f5(window: Browser, mark: str) -> None:
    """Press F5 until something starts: it does nothing before VSCode has loaded its extensions."""
    for _ in range(LIMIT // 30):
        window.press("F5")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if debugged(mark):
                return
            time.sleep(0.1)
    raise AssertionError("F5 started nothing")


def screenshot(window: Browser, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        window.screenshot(Path(folder) / f"{name}.png")


@pytest.mark.parametrize("turn", ["first", "again"])
def test_f5_stops_steps_shows_an_operation_and_stop_leaves_no_process(
    window: Browser, mark: str, turn: str
) -> None:
    started = time.monotonic()
    press_f5(window, mark)
    window.press("D", CONTROL | SHIFT)  # *Run and Debug*
    window.wait(PASS, ".debug-call-stack", LIMIT)
    seconds = time.monotonic() - started
    if not environment.sources():
        window.wait("make venv SOURCE=1", ".editor-group-container", LIMIT)
    screenshot(window, "stop")
    line = window.text(".debug-call-stack .monaco-list-row.selected")
    window.press("F10")
    window.wait("Paused on step", ".debug-call-stack", LIMIT)
    window.press("Y", CONTROL | SHIFT)  # *Debug Console*
    window.click(".repl-input-wrapper .monaco-editor")
    window.type("print-op")
    window.press("Enter")
    window.wait("tt.func public @triton_", ".repl", LIMIT)
    screenshot(window, "print-op")
    assert debugged(mark)
    window.press("F5", SHIFT)
    stopped = time.monotonic()
    wait_until(lambda: not debugged(mark))
    print(f"\n{turn}: C++ stop after {seconds:.1f} s at {line!r}, none left after "
          f"{time.monotonic() - stopped:.1f} s; load {os.getloadavg()[0]:.1f}")  # fmt: skip
