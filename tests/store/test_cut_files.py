"""Files of a run that end in the middle of a record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import zstandard
from commands import tracing
from damage.run_readers import ask
from handmade.records import META, arg, launch
from handmade.runs import saved

from tracing.model import Digest, LaunchLine, NotCovered, Result, TensorValue, Values, file_of
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


@pytest.mark.parametrize(
    "kind", ["kernels", pytest.param("signatures", marks=pytest.mark.soak), "launches", "digests"]
)
def test_every_cut_of_a_file_is_found_and_the_records_before_it_are_read(run: Run, kind: str) -> None:
    _path(run, "sizes").unlink()  # with it, cuts at the end of a line are found, too
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


def _truncated(run: Run, kind: str, size: int = -7) -> Path:
    path = _path(run, kind)
    path.write_bytes(path.read_bytes()[:size])
    return path


def test_a_file_of_launches_is_empty_where_nothing_was_launched(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [launch(0)])
    for kind in ("launches", "digests", "sizes"):
        _path(run, kind).unlink()
    (run.path / file_of(LaunchLine).file(_path(run, "kernels").name[8:-7])).touch()

    assert cut_files(run.path) == [] and ask("show", str(run.path)).status == 0


def test_a_run_whose_process_was_killed_is_read_up_to_the_cut(tmp_path: Path) -> None:
    run = saved(tmp_path / "run", [launch(n, arg("x", "in", str(n))) for n in range(20)], ended=False)
    path = _truncated(run, "launches")

    shown = tracing("show", str(run.path), runs=tmp_path)
    compared = tracing("compare", str(run.path), str(run.path), runs=tmp_path)

    assert (shown.returncode, compared.returncode) == (0, 2)
    for done in (shown, compared):
        assert f"ends early: {run.name}/{path.name}: its last " in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "size"), [("kernels", -7), ("launches", -7), ("launches", 0), ("digests", -7)]
)
@pytest.mark.parametrize("command", ["nan", "show", "report", "compare"])
def test_no_command_gives_an_answer_from_a_damaged_file(
    run: Run, kind: str, size: int, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _truncated(run, kind, size)

    answer = ask(command, *[str(run.path)] * (2 if command == "compare" else 1))

    assert answer.status == 2
    assert f"{path.name} is damaged: it" in answer.out + answer.err


def test_a_truncated_run_does_not_end_earlier_than_the_other(run: Run, tmp_path: Path) -> None:
    other = saved(tmp_path / "other", [launch(n, arg("x", "in", str(n))) for n in range(20)])
    path = _truncated(other, "launches")

    both = [ask("compare", str(a.path), str(b.path)) for a, b in [(run, other), (other, run)]]

    for answer in both:
        assert answer.status == 2 and "divergence" not in answer.out
        assert f"{path.name} is damaged" in answer.out
        assert "equal as far as both were recorded: 19 launches" in answer.out


def test_a_difference_before_the_damage_is_reported(run: Run, tmp_path: Path) -> None:
    launches = [launch(n, arg("x", "in", "other" if n == 2 else str(n))) for n in range(20)]
    other = saved(tmp_path / "other", launches)
    path = _truncated(other, "launches")

    answer = ask("compare", str(run.path), str(other.path))

    assert answer.status == 1
    assert "first divergence: launch #2" in answer.out and "at the end of its run" not in answer.out
    assert f"{path.name} is damaged" in answer.out


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


def _with_everything(folder: Path) -> Run:
    records = [
        Result("output", TensorValue(META, Digest("0" * 32))),
        Result("input 0", TensorValue(META, Digest("1" * 32))),
        Values(0, 0, "after", (1.0, 2.0)),
        Values(1, 0, "after", (1.0, 2.0)),
        NotCovered("a", ""),
        NotCovered("b", ""),
    ]
    return saved(folder, [launch(n, arg("x", "in", str(n))) for n in range(3)], records)


@pytest.mark.parametrize("kind", ["results", "values", "launches", "kernels", "uncovered", "digests"])
@pytest.mark.parametrize("loss", ["line", "file"])
def test_lost_lines_and_files_are_damage(kind: str, loss: str, tmp_path: Path) -> None:
    run, whole = _with_everything(tmp_path / "a"), _with_everything(tmp_path / "b")
    path = _path(run, kind)
    if loss == "file":
        path.unlink()
    elif path.suffix == ".ndjson":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        packed = zstandard.ZstdCompressor().compressobj()
        content = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
        lines = content.splitlines(keepends=True)[:-1]
        path.write_bytes(packed.compress(b"".join(lines)) + packed.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))

    (cut,) = cut_files(run.path)
    compared = ask("compare", str(run.path), str(whole.path))

    assert cut.path == path and cut.damaged
    assert ("is missing" if loss == "file" else "all later records are lost") in cut.how
    assert compared.status == 2
    assert "damaged" in compared.out + compared.err and path.name in compared.out + compared.err


def test_a_run_of_an_older_version_has_no_sizes_and_is_read(tmp_path: Path) -> None:
    run, whole = _with_everything(tmp_path / "a"), _with_everything(tmp_path / "b")
    _path(run, "sizes").unlink()

    assert cut_files(run.path) == [] and ask("compare", str(run.path), str(whole.path)).status == 0


def test_a_file_may_grow_after_it_was_closed(tmp_path: Path) -> None:
    run = _with_everything(tmp_path / "a")
    path = _path(run, "uncovered")
    path.write_bytes(path.read_bytes() * 2)

    assert cut_files(run.path) == []
