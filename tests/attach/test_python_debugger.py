"""debugpy reads the metadata of installed packages only for a log."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

DESCRIBED = """
from tracing.attach import python_debugger
python_debugger.describe_only_for_logs()
from debugpy.common import log
described = []
log.get_environment_description = described.append
log.describe_environment("the environment")
print(*described)
"""


@pytest.mark.parametrize(("levels", "described"), [("warning error", ""), ("info", "the environment")])
def test_the_environment_is_described_if_a_log_shows_it(levels: str, described: str) -> None:
    own = {**os.environ, "DEBUGPY_LOG_STDERR": levels}
    command = [sys.executable, "-c", DESCRIBED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)

    assert done.stdout.strip() == described


def test_a_program_without_a_debugger_is_not_traced() -> None:
    script = "from tracing.attach import python_debugger as debugger; debugger.switch(True)"
    command = [sys.executable, "-c", f"{script}; print(debugger.traces())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
