"""How long F5 takes to a stop, against the bare compile of the same kernel: printed, never asserted.

One run on one machine: the index cold, then warm. The goals: a warm stop in C++ within three bare compiles
and ten seconds, and the stop of a replay five seconds after its start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from debugger.conftest import PROGRAMS, gdb_for, gdb_with_dap
from debugger.editor import Editor, chosen, generated
from debugger.mi import Gdb
from debugger.native import WAIT
from debugger.test_f5 import OPEN_FILE, python_line, python_stop
from debugger.test_stop_button import by_dap, by_mi
from recorded.kernels import record

CASE = "Triton: silu to its first C++ stop"
ROUNDS = 2


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def bare() -> None:
    command = [sys.executable, str(PROGRAMS / "forked.py")]
    own = {**os.environ, "TRITON_ALWAYS_COMPILE": "1"}
    subprocess.run(command, check=True, env=own, capture_output=True)


def silu() -> None:
    command = [sys.executable, "-m", "tracing", "execute", "silu"]
    own = {**os.environ, "TRITON_ALWAYS_COMPILE": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    subprocess.run(command, check=True, env=own, capture_output=True)


def pressed(
    folder: Path, breakpoints: dict[str, list[int]], name: str = OPEN_FILE, kind: str = "cppdbg"
) -> tuple[float, float]:
    """Seconds from F5 to the stop in Python (0: no breakpoint there), and to the stop in C++."""
    launch = generated(folder, "--debugger", kind, gdb=gdb_for(kind))
    configuration = chosen(launch, name, PROGRAMS / "forked.py")
    started = time.perf_counter()
    editor = Editor(configuration, breakpoints)
    try:
        if breakpoints:
            python_stop(editor)
        in_python = time.perf_counter() - started if breakpoints else 0.0
        native = editor.natives.get(timeout=WAIT)
        with (by_mi if kind == "cppdbg" else by_dap)(native, editor.early):
            in_pass = time.perf_counter() - started
    finally:
        editor.close()
    return in_python, in_pass


def replayed(run: Path, folder: Path) -> None:
    inputs = {"run": str(run), "replay-kernel": "softmax", "replay-pass": "tritongpu-coalesce"}
    entry = chosen(generated(folder, "--debugger", "cppdbg"), "Triton: replay pass", Path(), **inputs)
    gdb = Gdb(entry)
    gdb.run(f"-file-exec-and-symbols {entry['program']}")
    gdb.run(f"-exec-arguments {' '.join(entry['args'])}")
    gdb.run("-exec-run")
    assert "CoalescePass" in gdb.stopped()["func"]
    gdb.close()


def test_seconds_from_f5_to_each_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "index"))
    path, line = python_line()
    bare()
    compiled = seconds(bare)
    _, cold = pressed(tmp_path, {})
    _, warm = pressed(tmp_path, {})
    in_python, _ = pressed(tmp_path, {path: [line]})
    in_case = min(pressed(tmp_path, {path: [line]}, CASE)[0] for _ in range(ROUNDS))
    kinds = {"cppdbg": "gdb's MI", **({"triton-gdb": "gdb's own adapter"} if gdb_with_dap() else {})}
    cases = {
        text: min(pressed(tmp_path, {}, CASE, kind)[1] for _ in range(ROUNDS)) for kind, text in kinds.items()
    }
    executed = min(seconds(silu) for _ in range(ROUNDS))
    run = record(tmp_path / "runs", "softmax").path
    replay = min(seconds(lambda: replayed(run, tmp_path)) for _ in range(ROUNDS))

    print(f"\na program that compiles one kernel in a worker: {compiled:.1f} s")
    for name, value in (("Python", in_python), ("C++, cold index", cold), ("C++, warm index", warm)):
        print(f"  F5 to the stop in {name}: {value:.1f} s, {value / compiled:.1f} x")
    print(f"silu without a debugger: {executed:.1f} s; load {os.getloadavg()[0]:.1f}; minima")
    for name, value in (("Python", in_case), *((f"C++, {text}", value) for text, value in cases.items())):
        print(
            f"  F5 to the stop in {name}: {value:.1f} s, {value / executed:.1f} x, of 10 s {value / 10:.0%}"
        )
    print(f"  of 3 x and 10 s, the warm stop in C++ takes {warm / (3 * compiled + 10):.0%}")
    print(f"  replay to its stop: {replay:.1f} s, of 5 s {replay / 5:.0%}")
