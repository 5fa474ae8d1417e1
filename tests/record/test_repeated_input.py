"""Each run of a series of programs reads the same standard input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TWICE = """
import os
from tracing.errors import Problem
from tracing.record.repeated_input import repeated_input

try:
    with repeated_input() as rewind:
        for _ in range(2):
            rewind()
            child = os.fork()
            if child == 0:
                print(repr(open(0).read()), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
except Problem as problem:
    print(problem.problem)
"""


def printed(**options: object) -> list[str]:
    done = subprocess.run([sys.executable, "-c", TWICE], stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    return done.stdout.splitlines()


def test_what_a_pipe_gives_is_read_by_each_run() -> None:
    assert printed(input="a\nb") == ["'a\\nb'"] * 2


def test_a_file_is_read_by_each_run_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("first\nsecond")
    with (tmp_path / "input").open() as file:
        file.readline()
        file.seek(len("first\n"))
        assert printed(stdin=file) == ["'second'"] * 2


@pytest.mark.parametrize("given", ["", "x"])
def test_a_pipe_that_stays_open_is_empty_or_refused(given: str) -> None:
    with subprocess.Popen(["sh", "-c", f"printf '{given}'; exec sleep 60"], stdout=subprocess.PIPE) as writer:
        lines = printed(stdin=writer.stdout)
        writer.kill()

    assert lines == (["standard input gave 1 bytes, and did not end"] if given else ["''"] * 2)


def test_no_standard_input_is_none() -> None:
    code = "from tracing.record.repeated_input import *\nwith repeated_input() as rewind: rewind()"

    assert subprocess.run(["sh", "-c", f"exec '{sys.executable}' -c '{code}' <&-"]).returncode == 0
