"""The files in which processes record what they compile."""

from __future__ import annotations

import os
from pathlib import Path

from tracing.attach.compiling import Compiling, read, write


def test_a_file_that_is_no_record_is_passed_over_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1.json")
    (tmp_path / "2.json").write_text("{")
    now = Compiling(3, "softmax", "ttgir", ("cse",), {}, (), "softmax:ttgir:cse")
    write(tmp_path, now)

    assert list(read(tmp_path)) == [now]
