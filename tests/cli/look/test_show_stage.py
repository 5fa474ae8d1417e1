"""`tracing show --launch N --stage STAGE`: one text of a launch's kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tracing
from handmade.records import launch, new_run
from handmade.runs import add
from msgspec.structs import replace

PYTHON, TTIR = "def double(x_ptr):\n    pass", "module {\n}"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    writer = new_run(tmp_path)
    made = launch(0)
    stages = {"ttir": writer.blob(TTIR), "cubin": writer.blob(b"\x7fELF")}
    add(writer, [replace(made, kernel=replace(made.kernel, source=writer.blob(PYTHON), stages=stages))])
    writer.close()
    return writer.path


@pytest.mark.parametrize(("stage", "text"), [("python", PYTHON), ("ttir", TTIR)])
def test_only_the_stage_is_printed(run: Path, stage: str, text: str) -> None:
    assert tracing("show", str(run), "--launch", "0", "--stage", stage, runs=run.parent).stdout == text + "\n"


@pytest.mark.parametrize("stage", ["cubin", "ptx", "tir"])
def test_a_stage_without_text_is_refused_with_those_that_have_one(run: Path, stage: str) -> None:
    done = tracing("show", str(run), "--launch", "0", "--stage", stage, runs=run.parent)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tracing: launch 0 has no text of stage {stage}\n  stages: python, ttir\n"


def test_a_stage_needs_a_launch(run: Path) -> None:
    done = tracing("show", str(run), "--stage", "ttir", runs=run.parent)

    assert done.returncode == 2 and "give --launch N" in done.stderr
