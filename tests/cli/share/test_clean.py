"""`tracing clean`: which folders are deleted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from documents.json_keys import require_documented
from handmade.records import new_run
from typer.testing import CliRunner

from tracing.cli.app import app


def cleaned(*words: str, runs: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["clean", *words, "--runs", str(runs)])
    return done.exit_code, done.output


def run(folder: Path) -> Path:
    writer = new_run(folder)
    writer.close()
    return writer.path


def test_named_runs_are_deleted_and_others_stay(tmp_path: Path) -> None:
    a, b = run(tmp_path), run(tmp_path)

    status, text = cleaned(a.name, "--json", runs=tmp_path)

    assert status == 0 and json.loads(text) == {"deleted": [str(a)], "kept": {}}
    assert not a.exists() and b.exists()


def test_with_all_every_run_of_the_folder_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    a = run(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()

    assert cleaned("--all", runs=tmp_path)[0] == 0
    assert not a.exists() and notes.exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()

    assert cleaned(str(notes), runs=tmp_path)[0] == 2
    assert cleaned(runs=tmp_path)[0] == 2
    assert notes.exists()


def test_a_run_that_another_process_records_is_kept(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[2])\n"
        "from handmade.records import new_run\nfrom tracing.model import NotCovered\n"
        "writer = new_run(pathlib.Path(sys.argv[1])); writer.append(NotCovered('a', ''))\n"
        "print(writer.path, flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parents[2])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        status, text = cleaned("--all", "--json", runs=tmp_path)

    printed = text[text.index("{") :]
    require_documented(printed, "## `tracing clean`")
    assert status == 2 and path.exists()
    assert list(json.loads(printed)["kept"].values()) == ["a process still records it"]
