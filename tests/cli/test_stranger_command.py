"""Commands on a stranger's run execute nothing of it without consent, and print no control characters."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
from pathlib import Path

import pytest
from commands import tracing
from damage.mutated_runs import as_of_another_compiler
from damage.run_readers import CONTROL, ask, questions
from handmade.hostile_runs import TEXTS, hostile_runs, made
from handmade.small_runs import small_run

ESCAPE = TEXTS["title"]
EXECUTING = (
    "replay", "repro", "replay --check-memory", "judge", "swap", "lit --pass 0", "resume --pass 0",
    "reduce --pass 0", "debug --pass 0", "execute --pass 0",
)  # fmt: skip


@pytest.mark.soak
def test_no_command_prints_what_a_terminal_would_execute(tmp_path: Path) -> None:
    good = as_of_another_compiler(small_run(tmp_path / "good"))
    runs = [
        made(one, good, tmp_path / str(number) / "run")
        for number, one in enumerate(hostile_runs(good))
        if one.name.endswith((" title", " C1"))
    ]

    answers = [ask(*words) for run in runs for words in questions(run, good, 0, "k")[:4]]

    assert len(runs) > 50
    assert not any(CONTROL.search(answer.out + answer.err) for answer in answers)
    assert any("\\u001b]0;owned" in answer.out for answer in answers)
    assert any("\\u009b31m" in answer.out for answer in answers)


def test_a_terminal_receives_styles_only(tmp_path: Path) -> None:
    run = small_run(tmp_path, kernel=f"k{ESCAPE}")
    read, write = pty.openpty()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.environ["TERM"] = "xterm-256color"
        os.execv(sys.executable, [sys.executable, "-m", "tracing", "show", str(run)])
    os.close(write)
    printed = b""
    with contextlib.suppress(OSError):  # the terminal is closed
        while piece := os.read(read, 1 << 16):
            printed += piece
    os.waitpid(child, 0)

    assert rb"k\u001b]0;owned" in printed
    assert b"\x1b[1m" in printed  # what is bold
    assert b"\x1b]" not in printed


@pytest.mark.parametrize("words", EXECUTING)
def test_what_a_stranger_recorded_is_executed_with_consent_only(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, marker = tmp_path / "case.py", tmp_path / "executed"
    case.write_text(f"open({str(marker)!r}, 'w')\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    runs = [small_run(tmp_path / name, case=case, result=name, failed=False) for name in ("a", "b")]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "ours"))
    command, *options = words.split()
    which = [str(run) for run in runs] if command == "swap" else [str(runs[0]), *options]
    which += ["--launch", "0"] if command in ("replay", "repro") else []

    answer = ask(command, *which)

    assert answer.status == 2
    assert "was not recorded by you on this host" in answer.err
    assert "--trust" in answer.err
    assert any(one in answer.err for one in (str(case), "the source of k", "on its IR"))
    assert not marker.exists()


def test_with_consent_it_is_executed_and_printed(tmp_path: Path) -> None:
    case, marker = tmp_path / "case.py", tmp_path / "executed"
    case.write_text(f"open({str(marker)!r}, 'w')\n")
    run = small_run(tmp_path / "runs", case=case, failed=False)
    ours = {"XDG_STATE_HOME": str(tmp_path / "ours")}

    refused = tracing("judge", str(run), runs=tmp_path, **ours)
    assert (refused.returncode, marker.exists()) == (2, False)

    consented = tracing("judge", str(run), "--trust", runs=tmp_path, **ours)
    assert f"executing `env WIDTH=3 tracing run {case}" in consented.stderr
    assert marker.exists()


def test_one_bad_run_does_not_stop_the_list(tmp_path: Path) -> None:
    good = small_run(tmp_path)
    for kind in ("fifo", "folder", "/dev/zero", "deep", "sparse", "binary"):
        (bad,) = (one for one in hostile_runs(good) if one.name == f"run.json {kind}")
        made(bad, good, tmp_path / f"bad {kind.strip('/').replace('/', ' ')}")

    answer = ask("list", "--runs", str(tmp_path))

    assert answer.status == 0
    assert len(answer.out.splitlines()) == 7 - ("folder" not in answer.out)
    assert f"\n{good.name}  failed" in f"\n{answer.out}"
