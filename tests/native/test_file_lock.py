"""A lock is waited for, for a bounded time, and is not needed where there is none."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tracing.native.file_lock import locked

HOLDER = """
import subprocess, sys
from pathlib import Path
from tracing.native.file_lock import locked
with locked(Path(sys.argv[1]), seconds=0):
    subprocess.run(["sh", "-c", "echo started; cat"])
"""


def test_the_wait_for_a_lock_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "built.lock"

    with (
        locked(file, seconds=0),
        pytest.raises(TimeoutError, match=r"another process has held .*/built\.lock for 0 s"),
        locked(file, seconds=0),
    ):
        pass


def test_a_lock_is_released_after_the_block(tmp_path: Path) -> None:
    file = tmp_path / "built.lock"

    with pytest.raises(ValueError, match="of the block"), locked(file, seconds=0):
        raise ValueError("of the block")
    with locked(file, seconds=0):
        pass


def test_a_process_that_died_holds_no_lock_even_if_its_compiler_still_runs(tmp_path: Path) -> None:
    file = tmp_path / "built.lock"
    command = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.kill()
        process.wait()

        with locked(file, seconds=0):
            pass


def test_a_block_runs_without_a_lock_where_the_file_cannot_be_created(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "built.lock"

    with locked(file, seconds=0), locked(file, seconds=0):
        assert not file.exists()


def test_a_block_runs_without_a_lock_on_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    file = tmp_path / "built.lock"

    with locked(file, seconds=0), locked(file, seconds=0):
        assert file.exists()
