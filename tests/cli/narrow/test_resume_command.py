"""`tracing resume` refuses an artefact that does not follow, and a file without IR, before it compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tracing

from tracing import store
from tracing.cli.narrow.other_compiler import unlike_result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    done = tracing("run", "silu", "--compile-only", "--ir", "during", runs=runs)
    return Path(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("artefact", "remedy"),
    [
        ("ptxx", "nearest: ptx; end with one of: ttgir, llir, ptx, cubin"),
        ("ttir", "end with one of: ttgir, llir, ptx, cubin"),
        ("triton-nvidia-mma-lowering", "end with one of: ttgir, llir, ptx, cubin"),
    ],
)
def test_an_artefact_that_does_not_follow_is_refused_with_those_that_do(
    artefact: str, remedy: str, run: Path
) -> None:
    done = tracing("resume", str(run), "--pass", "tritongpu-coalesce", "--to", artefact, runs=run.parent)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"tracing: {artefact} is no artefact of a compile from stage ttgir on" in done.stderr
    assert remedy in done.stderr


def test_an_empty_file_is_no_ir(run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.ttgir"
    empty.write_text("\n")

    done = tracing("resume", str(run), "--pass", "tritongpu-coalesce", "--ir", str(empty), runs=run.parent)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"tracing: {empty} is empty" in done.stderr.splitlines()


def test_each_recorded_pass_gives_what_was_recorded(run: Path) -> None:
    passes = [one for one in store.Run(run).passes() if one.pipeline]

    assert {one.stage for one in passes} == {"ttir", "ttgir", "llir"}
    assert unlike_result(store.Run(run), passes) is None


def test_reduce_names_a_pass_that_does_not_fail(run: Path) -> None:
    for which in ("convert-triton-gpu-to-llvm", "enable-line-info"):
        done = tracing("reduce", str(run), "--pass", which, runs=run.parent)

        assert (done.returncode, done.stdout) == (2, "")
        assert f"tracing: {which} does not die on its recorded input" in done.stderr.splitlines()
