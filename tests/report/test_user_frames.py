"""A failed run is shown with the user's own frames."""

from __future__ import annotations

from pathlib import Path

from handmade.runs import saved

from tracing.model import Outcome
from tracing.report.run import run_text
from tracing.report.user_frames import user_frames

FILES = (
    "/home/me/debug/tracing/record/run.py", "/home/me/model.py", "/venv/lib/python3.11/site-packages/x.py",
    "/usr/lib/python3.11/runpy.py", "/home/me/debug/tracing/launch/hooks.py", "/home/me/tracing_ray/a.py",
    "/tmp/torchinductor_me/ab/cab.py", "<string>",
)  # fmt: skip
TRACEBACK = "".join(
    ["Traceback (most recent call last):\n"]
    + [f'  File "{file}", line 7, in f\n    call()\n    ^^^^^^\n' for file in FILES]
    + ["ValueError: no\n"]
)


def test_frames_of_libraries_of_generated_code_and_of_this_package_are_not_the_users() -> None:
    own = [frame.splitlines()[0] for frame in user_frames(TRACEBACK)]

    assert own == [f'  File "{file}", line 7, in f' for file in (FILES[1], FILES[5])]


def test_a_failed_run_is_shown_with_the_users_frames_and_where_the_others_are(tmp_path: Path) -> None:
    run = saved(tmp_path, [], [Outcome("failed", "ValueError: no (model.py:7)", TRACEBACK)])
    lines = [line if isinstance(line, str) else line.plain for line in run_text(run)]
    text = "\n".join(lines)

    assert '"/home/me/model.py", line 7' in text and "site-packages" not in text
    assert f"the whole traceback, {TRACEBACK.count(chr(10))} lines: `tracing show {run.path} --json`" in text
