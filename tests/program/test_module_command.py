"""Files of the user's folder replace no module of a process that this project starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tracing.environment import module_command


def test_files_of_the_working_directory_replace_no_module(tmp_path: Path) -> None:
    for name in ("glob", "random", "queue", "torch"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the user’s own')")
    command = module_command("tracing", "cases", "--json")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "silu" in done.stdout
