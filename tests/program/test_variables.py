"""The environment variables that a case reads are recorded, and set by the command that records it anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shlex import join

import pytest
from commands import DATA, recorded, tracing
from handmade.records import new_run

from tracing import environment
from tracing.analyze.runs.recording_commands import command, recording, variables
from tracing.analyze.runs.results import differing_results
from tracing.model import ReadVariable
from tracing.program.user_code import is_users
from tracing.program.variables import Reads
from tracing.store import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FAULT": "1", "NEGATIVE": "", "DB_PASSWORD": "hush", "SCALE": "0.5 "}.items():
            patch.setenv(name, value)
        patch.delenv("BIAS", raising=False)
        return Run(Path(recorded(str(DATA / "reads.py"), tmp_path_factory.mktemp("runs"), "--no-passes")))


def test_variables_read_at_import_build_and_run_are_recorded(run: Run) -> None:
    assert {one.name: one.value for one in run.records(ReadVariable)} == {
        "SCALE": "0.5 ",
        "NEGATIVE": "",
        "DB_PASSWORD": None,
        "BIAS": None,
        "FAULT": "1",
    }


def test_a_secret_is_not_recorded_and_is_reported_as_missing(run: Run) -> None:
    assert all(b"hush" not in path.read_bytes() for path in run.path.glob("*.ndjson"))
    shown = tracing("show", str(run.path), runs=run.path.parent).stdout
    assert "DB_PASSWORD (not recorded)" in shown and "BIAS (not set)" in shown


def test_the_command_that_records_anew_sets_the_variables(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIAS", "7")
    typed = join(recording(run, "--no-passes", "--runs", str(tmp_path)))
    assert typed.startswith("env -u BIAS 'SCALE=0.5 ' NEGATIVE= FAULT=1 tracing run ")

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    again = subprocess.run(
        typed, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )

    assert again.returncode == 0, again.stderr
    assert differing_results(run, Run(Path(again.stdout.split()[-1]))) == ()


def test_a_subprocess_receives_the_variables_too(run: Run) -> None:
    own = environment.with_variables({**variables(run), "HOME": None})

    assert (own["FAULT"], "BIAS" in own, "HOME" in own) == ("1", False, False)
    assert command(run.info)[:2] == ["tracing", "run"]


def test_variables_of_torchrun_are_not_in_the_command(tmp_path: Path) -> None:
    writer = new_run(tmp_path)
    writer.extend([ReadVariable("RANK", "1"), ReadVariable("TORCHELASTIC_RUN_ID", "x")])

    assert recording(Run(writer.path))[:2] == ["tracing", "run"]


def test_reading_the_whole_environment_records_no_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE", "1")
    script = tmp_path / "everything.py"
    script.write_text(
        "import os\n"
        "a = dict(os.environ), {**os.environ}, os.environ.copy(), list(os.environ.values())\n"
        "b = {name: value for name, value in os.environ.items()}\n"
        "c = [os.environ[name] for name in os.environ if name == 'ONE']\n"
    )
    writer = new_run(tmp_path)
    with Reads() as reads:
        exec(compile(script.read_text(), str(script), "exec"), {"__name__": "everything"})
        reads.into(writer)

    assert list(Run(writer.path).records(ReadVariable)) == [ReadVariable("ONE", "1")]


def test_variables_read_by_installed_packages_are_not_recorded() -> None:
    assert (
        not is_users(json.__file__) and not is_users(pytest.__file__) and not is_users(environment.__file__)
    )
    assert is_users(__file__)
    assert not is_users("<frozen os>")


def test_variables_are_set_and_restored() -> None:
    before = dict(os.environ)
    with environment.changed({"TRACING_A": "1", "HOME": None}):
        assert os.environ["TRACING_A"] == "1" and "HOME" not in os.environ
    assert dict(os.environ) == before
