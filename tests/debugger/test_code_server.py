"""F5 and the report in VSCode itself: code-server in a headless Chromium, with debugpy's extension and ours.

    CODE_SERVER=code-server VSIX=python.vsix:debugpy.vsix GDB_DAP=gdb SCREENSHOTS=docs make soak

VSIX are the extensions that are not ours: ms-python.debugpy, and ms-python.python, on which it depends.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import ROOT, make_vscode, recorded
from debugger.browser import CONTROL, SHIFT, Browser
from debugger.conftest import gdb_for
from debugger.test_stop_button import wait_until

from tracing.environment import installed_tools

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
PASS = "CoalescePass::runOnOperation"
LIMIT = 400  # seconds, of a machine that others use too
SHIM = '#!/bin/sh\nexec {code} --user-data-dir {home}/data --extensions-dir {home}/extensions "$@"\n'
WORKBENCH = ["--auth", "none", "--bind-addr"]
QUIET = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"]
STALE = "list index out of range"
CONSOLE = ".repl-input-wrapper .monaco-editor"
# the first element that matches in the page or in one of its frames
IN_FRAMES = """(() => {{
  const inner = (page) => [...page.querySelectorAll("iframe")].flatMap((one) => one.contentDocument ?? [])
  const all = (page) => [page, ...inner(page).flatMap(all)]
  const found = all(document).map((page) => page.querySelector({selector})).find(Boolean)
  return found ? ({action})(found) : null
}})()"""
DEBUGGED = (b"tracing\0execute", b"/debugpy/", b"gdb_load.py")


@pytest.fixture(scope="module")
def mark() -> str:
    """A text in the environment of every process that code-server starts."""
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def code_server(tmp_path_factory: pytest.TempPathFactory, mark: str) -> Iterator[str]:
    """A code-server with the extensions and the files of `make vscode`; the address of its workspace."""
    code, others = shutil.which(os.environ.get("CODE_SERVER", "code-server")), os.environ.get("VSIX", "")
    if not code or not others:
        pytest.skip("no code-server, or no .vsix of debugpy's extension: CODE_SERVER and VSIX can name them")
    home = tmp_path_factory.mktemp("code-server")
    shim = home / "bin/code-server"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(code=code, home=home))
    shim.chmod(0o755)
    (settings := home / "data/User/settings.json").parent.mkdir(parents=True)
    # the browser draws on the same processors
    settings.write_text(json.dumps({"workbench.reduceMotion": "on"}))
    for vsix in others.split(os.pathsep):
        subprocess.run([str(shim), "--install-extension", vsix], check=True, capture_output=True)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    done = make_vscode(home / "project", PATH=path, GDB=gdb_for("triton-gdb"))
    assert done.returncode == 0 and done.stderr == "", done.stderr
    own = {**os.environ, "MARK": mark, "OMP_NUM_THREADS": "1"}
    address = f"127.0.0.1:{free_port()}"
    command = [str(shim), *WORKBENCH, address, *QUIET]
    server = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, cwd=ROOT)
    try:
        wait_until(lambda: listening(address))
        yield f"http://{address}/?workspace={home}/project/debug-triton.code-workspace"
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@pytest.fixture
def window(code_server: str, tmp_path: Path) -> Iterator[Browser]:
    """A fresh window of the workspace, whose extensions are loaded."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("no chromium")
    window = Browser(chromium, tmp_path, code_server)
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


def press_f5(window: Browser, mark: str) -> float:
    """Press F5 until something starts, and return when the last press was.

    VSCode ignores F5 before it has loaded its extensions.
    """
    for _ in range(LIMIT // 30):
        pressed = time.monotonic()
        window.press("F5")
        while time.monotonic() < pressed + 30:
            if debugged(mark):
                return pressed
            time.sleep(0.1)
    raise AssertionError("F5 started nothing")


def screenshot(window: Browser, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        window.screenshot(Path(folder) / f"{name}.png")


def test_f5_stops_steps_shows_an_operation_and_stop_leaves_no_process(window: Browser, mark: str) -> None:
    opened = time.monotonic()
    for turn in ("in a fresh window", "in the same window", "once more"):
        pressed = session(window, mark, turn)
        print(f"  F5 was pressed {pressed - opened:.1f} s after the window had been opened")


def session(window: Browser, mark: str, turn: str) -> float:
    """F5, a C++ stop, a step, an operation, Stop; return when F5 was pressed."""
    pressed = press_f5(window, mark)
    window.press("D", CONTROL | SHIFT)  # *Run and Debug*
    window.wait(PASS, ".debug-call-stack", LIMIT)
    seconds = time.monotonic() - pressed
    if not installed_tools.sources():
        window.wait("make venv SOURCE=1", ".editor-group-container", LIMIT)
    screenshot(window, "stop")
    line = window.text(".debug-call-stack .monaco-list-row.selected")
    window.press("F10")
    window.wait("Paused on step", ".debug-call-stack", LIMIT)
    print_op(window, "triton_")
    screenshot(window, "print-op")
    print(f"\n{turn}: C++ stop after {seconds:.1f} s at {line!r}, none left after "
          f"{stop(window, mark):.1f} s; load {os.getloadavg()[0]:.1f}")  # fmt: skip
    return pressed


def print_op(window: Browser, kernel: str) -> None:
    """Print the operation of the pass in the Debug Console, which is that of a kernel."""
    window.press("Y", CONTROL | SHIFT)  # *Debug Console*
    for attempt in range(3):
        type_command(window, "print-op")
        # after a step gdb refuses the frame that VSCode names, until VSCode has read the new ones
        wait_until(lambda: shown(window, kernel) or window.text(".repl").count(STALE) > attempt)  # noqa: B023
        if shown(window, kernel):
            return
    raise AssertionError(window.text(".repl"))


def type_command(window: Browser, command: str) -> None:
    """Enter a command in the Debug Console; soon after a stop VSCode may move the focus elsewhere."""
    for _ in range(LIMIT // 20):
        window.press("Escape")  # closes the dialog of *Start Debugging*, if an Enter went there
        window.click(CONSOLE)
        if typed(window) != command:
            window.type(command)
        if soon(lambda: typed(window) == command):
            window.press("Enter")
            if soon(lambda: typed(window) != command):
                return
    raise AssertionError(f"the Debug Console did not take {command!r}: {window.text()[-3000:]}")


def typed(window: Browser) -> str:
    return window.text(f"{CONSOLE} .view-lines").strip()


def soon(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.1)
    return False


def shown(window: Browser, kernel: str) -> bool:
    return f"tt.func public @{kernel}" in window.text(".repl").replace("\xa0", " ")


def stop(window: Browser, mark: str) -> float:
    """Press Stop; return the seconds until no process is left."""
    assert debugged(mark)
    window.press("F5", SHIFT)
    pressed = time.monotonic()
    wait_until(lambda: not debugged(mark))
    return time.monotonic() - pressed


@pytest.fixture(scope="module")
def runs() -> Iterator[list[str]]:
    """Two runs in the checkout's folder, where VSCode's lists look for them."""
    paths = [Path(recorded(case, ROOT / "runs")) for case in ("silu", "gated_mlp")]
    yield [path.name for path in paths]
    for path in paths:
        shutil.rmtree(path)


def test_run_kernel_and_pass_are_chosen_from_lists(window: Browser, mark: str, runs: list[str]) -> None:
    start = "Debug: Select and Start Debugging"
    while start not in window.text(".quick-input-list"):  # VSCode lists it when it has loaded its extensions
        window.press("Escape")
        window.press("F1")
        time.sleep(1)
        window.type(start)
        time.sleep(2)
    window.press("Enter")
    choose(window, "Triton: replay pass")
    pressed = time.monotonic()
    choose(window, runs[1])
    choose(window, "triton_poi_fused_mul_sigmoid_1#1")
    screenshot(window, "pick")
    choose(window, "convert-triton-to-tritongpu")
    chosen = time.monotonic()
    window.press("D", CONTROL | SHIFT)
    window.wait("ConvertTritonToTritonGPU::runOnOperation", ".debug-call-stack", LIMIT)
    seconds = time.monotonic() - chosen
    print_op(window, "triton_poi_fused_mul_sigmoid_1")
    screenshot(window, "picked")
    print(f"\nlists {chosen - pressed:.1f} s, C++ stop after {seconds:.1f} s, none left after "
          f"{stop(window, mark):.1f} s; load {os.getloadavg()[0]:.1f}")  # fmt: skip


def choose(window: Browser, label: str) -> None:
    """Choose an entry of VSCode's list by its label."""
    window.wait(label, ".quick-input-list", LIMIT)
    window.type(label)
    time.sleep(0.5)
    window.press("Enter")
    time.sleep(0.5)


@pytest.fixture(scope="module")
def run() -> Iterator[str]:
    """The name of a run of silu, where VSCode looks for runs."""
    path = Path(recorded("silu", ROOT / "runs"))
    yield path.name
    shutil.rmtree(path)


def in_frames(window: Browser, selector: str, action: str = "(one) => one.innerText") -> str:
    """Wait for an element in a frame of the page; the value of a function of it."""
    script = IN_FRAMES.format(selector=json.dumps(selector), action=action)
    wait_until(lambda: window.evaluate(script.replace(action, "() => true")))
    return str(window.evaluate(script))


def quick_open(window: Browser, text: str) -> None:
    listed = text.removeprefix("task ")
    for _ in range(LIMIT // 10):  # an editor that opens meanwhile takes the focus
        window.press("P", CONTROL)
        wait_until(lambda: window.evaluate("!!document.activeElement.closest('.quick-input-widget')"))
        window.type(text)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if listed in window.text(".quick-input-list").replace("\xa0", " "):
                window.press("Enter")
                return
            time.sleep(0.1)
        window.press("Escape")
    raise AssertionError(f"{listed} is not listed")


def test_the_task_opens_the_report_next_to_the_source_and_its_lines_in_the_editor(
    window: Browser, run: str
) -> None:
    quick_open(window, "driver.py")
    window.wait("Ln 1, Col 1", ".statusbar", LIMIT)
    quick_open(window, "task triton: open report")
    wait_until(lambda: run in window.text(".quick-input-list") or report_shown(window))
    if not report_shown(window):  # there are several runs, and the newest is chosen
        window.press("Enter")

    assert run in in_frames(window, "header h1")
    assert window.evaluate("document.querySelectorAll('.editor-group-container').length") == 2
    in_frames(window, "header nav a[href$=launches]", "(one) => one.click()")
    in_frames(window, ".space .row", "(one) => one.click()")
    line = in_frames(window, ".detail .facts a[href^=vscode]", "(one) => { one.click(); return one.href }")
    window.wait("silu.py", "body", LIMIT)
    window.wait(f"Ln {line.rpartition(':')[2]},", ".statusbar", LIMIT)
    screenshot(window, "editor")


def report_shown(window: Browser) -> bool:
    return "Report of" in window.text(".monaco-workbench .part.editor")
