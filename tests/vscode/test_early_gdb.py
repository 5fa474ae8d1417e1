"""The gdb that our extension starts with a program: who gets it, and that none is left."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import ROOT

SESSION = Path(__file__).with_name("early_gdb_session.js")
ECHO = "#!/bin/sh\necho $$ >> {pids}\nexec cat\n"  # instead of gdb: it answers with what it is asked


def test_one_session_gets_the_gdb_that_is_ready_and_none_outlives_its_program(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: the extension runs in VSCode only")
    gdb, pids, requested = tmp_path / "gdb", tmp_path / "pids", tmp_path / "session.json"
    gdb.write_text(ECHO.format(pids=pids))
    gdb.chmod(0o755)
    requested.write_text(json.dumps({"type": "triton-gdb", "gdb": str(gdb), "commands": ["break-pass"]}))

    command = [node, str(SESSION), str(ROOT / "vscode/extension"), str(requested)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert json.loads(done.stdout) == {
        "ofSubprocess": "DebugAdapterExecutable",
        "ofOthers": "DebugAdapterExecutable",
        "ready": "DebugAdapterNamedPipeServer",
        "answer": "initialize",
        "second": "DebugAdapterExecutable",
        "afterStop": "DebugAdapterExecutable",
    }, done.stderr
    started = pids.read_text().split()
    assert started and not any(Path("/proc", pid).exists() for pid in started)
