"""Files of a run that end in the middle of a record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import zstandard
from commands import tracing
from handmade.records import arg, launch
from handmade.runs import saved

from tracing.store import Run
from tracing.store.cut_files import cut_files


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return saved(tmp_path / "run", [launch(n, arg("x", "in", str(n))) for n in range(20)])


def _path(run: Run, kind: str) -> Path:
    (path,) = run.path.glob(f"{kind}-*")
    return path


def test_whole_files_are_not_listed(run: Run) -> None:
    assert cut_files(run.path) == []


@pytest.mark.parametrize("kind", ["kernels", "signatures", "launches", "digests"])
def test_every_cut_of_a_file_is_found_and_the_records_before_it_are_read(run: Run, kind: str) -> None:
    path = _path(run, kind)
    content = path.read_bytes()
    ends = []
    for size in range(1, len(content)):
        path.write_bytes(content[:size])
        cuts = cut_files(run.path)
        if not cuts:
            ends.append(size)
        else:
            assert [cut.path for cut in cuts] == [path] and 0 < cuts[0].lost <= size
    if path.suffix == ".ndjson":
        assert ends == [n + 1 for n, byte in enumerate(content[:-1]) if byte == ord("\n")]
    else:
        assert len(ends) < len(content) / 10


def test_show_and_compare_say_which_file_ends_early(run: Run, tmp_path: Path) -> None:
    path = _path(run, "launches")
    path.write_bytes(path.read_bytes()[:-7])

    shown = tracing("show", str(run.path), runs=tmp_path)
    compared = tracing("compare", str(run.path), str(run.path), runs=tmp_path)

    for done in (shown, compared):
        assert f"ends early: {run.name}/{path.name}: its last " in done.stdout + done.stderr


def test_the_cut_of_a_long_file_is_found(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [launch(0, arg("x", "in", "0"))])
    path = _path(run, "launches")
    packer = zstandard.ZstdCompressor(level=-5).compressobj()
    content = b"".join(packer.compress(random.randbytes(1 << 20)) for _ in range(40)) + packer.flush()
    path.write_bytes(content)
    assert cut_files(run.path) == []

    path.write_bytes(content[:-1000])

    (cut,) = cut_files(run.path)
    assert 0 < cut.lost < 1 << 18
