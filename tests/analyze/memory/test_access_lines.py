"""An access of a generated kernel is shown by the kernel's line, whose file in Inductor's cache is gone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from handmade.records import launch, new_run
from msgspec.structs import replace

from tracing.analyze.memory import access_lines
from tracing.analyze.memory.access_lines import access_line
from tracing.analyze.memory.static_accesses import source_line
from tracing.model import CopiedFunction
from tracing.store import Run
from tracing.store.graph_file import PythonLine

SOURCE = "@triton.jit\ndef k(p):\n    x = tl.load(p)\n    tl.store(p, x)\n"
COMPUTED = (PythonLine("/m/model.py", 7, "f", "x + 1"), PythonLine("/m/model.py", 7, "f", "x + 1"))


@pytest.mark.parametrize(
    ("computed", "where", "expected"),
    [
        (COMPUTED, "cabc.py:13", "`tl.store(p, x)`, which computes model.py:7"),
        (COMPUTED, "cabc.py:99", "cabc.py:99"),
        (COMPUTED, "ops.py:13", "ops.py:13"),  # a function that the kernel calls
        ((), "cabc.py:13", "cabc.py:13"),  # of the program itself
        (COMPUTED, None, ""),
    ],
)
def test_the_line_of_an_access(
    computed: tuple[PythonLine, ...], where: str | None, expected: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(access_lines, "launch_lines", lambda run, rank, launch: computed)
    with closing(new_run(tmp_path)) as writer:
        source = writer.blob(SOURCE)
    one = launch(0)
    one = replace(one, kernel=replace(one.kernel, file="/cache/cabc.py:10", source=source))

    assert access_line(Run(writer.path), 0, one, where) == expected


def test_a_line_of_a_copy_is_that_of_the_user() -> None:
    ttir = '%0 = tt.load %x loc(#loc1)\n#loc1 = loc("/tmp/copy.py":12:4)'
    copied = CopiedFunction("/tmp/copy.py", 10, 5, "/home/kernel.py", 40)

    assert source_line(ttir, 1) == "copy.py:12"
    assert source_line(ttir, 1, [copied]) == "kernel.py:42"
