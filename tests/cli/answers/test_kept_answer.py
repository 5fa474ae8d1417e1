"""--into: an answer is kept in a run of the case that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade.runs import saved
from typer.testing import CliRunner

from tracing.cli.app import app
from tracing.model import KeptAnswer
from tracing.program.case import case_name


@pytest.mark.parametrize("line", ["bisect silu", "bisect silu --good-torch 2.12", "diff silu"])
def test_a_run_of_another_case_keeps_no_answer(line: str, tmp_path: Path) -> None:
    run = saved(tmp_path, [])

    done = CliRunner().invoke(app, [*line.split(), "--into", str(run.path)])

    assert done.exit_code == 2
    assert "--into names a run of case, and the answer is about silu\n" in done.stderr
    assert not [*run.records(KeptAnswer)]


def test_a_case_is_named_with_its_options() -> None:
    assert case_name("silu") == "silu"
    assert case_name("cases/ssm.py:small=true,batch=2") == "ssm+small=true,batch=2"
