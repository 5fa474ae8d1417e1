"""The environment variables that a program's source names are recorded when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracing.analyze.runs.recording_commands import variables
from tracing.model import ReadVariable
from tracing.program.named_variables import named_variables
from tracing.store import Run


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os; a = os.environ['A']", {"A"}),
        ("import os; a = os.environ.get('A', '1'); b = os.getenv('B')", {"A", "B"}),
        ("from os import environ, getenv; a = 'A' in environ or getenv('B')", {"A", "B"}),
        ("import os; os.environ.setdefault('A', '1'); os.environ.pop('B', None)", {"A", "B"}),
        ("import os; os.environ['A'] = '1'; os.environ.update(B='1')", set()),
        ("options = {}; options['A'], options.get('B'), 'C' in options", set()),
        ("import os; [os.environ[name] for name in os.environ]", set()),
    ],
)
def test_the_names_that_are_read_are_found(source: str, names: set[str]) -> None:
    assert set(named_variables(source)) == names


def test_the_variables_of_a_program_and_of_its_modules_are_recorded_as_they_were_at_its_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "helper.py").write_text("import os\nRATE = float(os.getenv('RATE', '0.1'))\n")
    (tmp_path / "train.py").write_text(
        "import os, helper\n"
        "os.environ['DEPTH'] = '9'\n"
        "print(os.environ['DEPTH'], os.environ.get('DB_PASSWORD'), 'WIDTH' in os.environ, helper.RATE)\n"
    )
    given = {"DEPTH": "3", "RATE": "0.5", "DB_PASSWORD": "hush", "OTHER": "1"}

    command = [
        sys.executable,
        "-m",
        "tracing",
        "run",
        "--runs",
        str(tmp_path / "runs"),
        str(tmp_path / "train.py"),
    ]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
    (run,) = map(Run, (tmp_path / "runs").iterdir())

    assert done.stdout == "9 hush False 0.5\n", done.stderr
    assert variables(run) == {"DEPTH": "3", "RATE": "0.5", "WIDTH": None}
    assert [one.name for one in run.records(ReadVariable) if one.redacted] == ["DB_PASSWORD"]
    assert all(b"hush" not in path.read_bytes() for path in run.path.iterdir() if path.is_file())
