"""A run on disk is readable even if the process that wrote it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from commands import TESTS
from handmade.records import INFO

from tracing import store
from tracing.digest.columns import Columns, Digested, packed
from tracing.errors import Problem
from tracing.model import (
    Argument,
    Digest,
    Kernel,
    LaunchLine,
    NotCovered,
    Outcome,
    Segment,
    Signature,
    Storage,
    TensorMeta,
    file_of,
)
from tracing.store.appended_file import AppendedFile
from tracing.store.lines import lines
from tracing.store.run_files import PIECE, content
from tracing.store.seals import is_own

META = TensorMeta((2,), (1,), "float32", "cpu")
X, OLD = (Digest(letter * 32, letter * 6, l1=1.5) for letter in "af")


def new(index: int) -> Digest:
    return Digest(f"{index:032x}", "123", nan=index)


def write_launches(writer: store.RunWriter, count: int) -> None:
    writer.append(Kernel(0, "k", "hash", "cuda:90", 4, 3, 1, {}, {}))
    args = (Argument("x", "in", META), Argument("n", value=2), Argument("y", "out", META))
    writer.append(Signature(0, 0, (1, 1, 1), "forward", "cpu", args))
    for index in range(count):
        writer.append(LaunchLine(index, 0, 0, (5, 6)))
        columns = Columns.of([X, OLD, new(index)])
        writer.extend(list(packed([Digested(index, columns, 0, (0, 2), (2,))])))


def test_launches_are_joined_with_their_kernel_signature_and_digests(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 3)

    launches = list(store.Run(writer.path).launches())

    x, n, y = launches[2].args
    assert [launch.index for launch in launches] == [0, 1, 2]
    assert (x.storage, n.value, y.storage) == (5, 2, 6)
    assert (x.modified, y.modified, y.after) == (False, True, new(2))


def test_a_blob_is_stored_once(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)

    names = {writer.blob("module {}") for _ in range(3)}

    assert len(list((writer.path / "blobs").iterdir())) == len(names) == 1
    assert store.Run(writer.path).text(names.pop()) == "module {}"


def test_a_program_that_changes_its_working_directory_is_recorded_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = store.create(Path("runs"), INFO)
    monkeypatch.chdir("/")

    write_launches(writer, 1)
    name = writer.blob("module {}")

    run = store.Run(writer.path)
    assert (len(list(run.launches())), run.text(name)) == (1, "module {}")


def test_a_disk_that_is_full_at_the_end_is_noted_and_every_file_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 1)

    def noted(error: OSError) -> None:
        writer.last(NotCovered(str(error)))

    def full(_: AppendedFile) -> int:
        monkeypatch.undo()
        raise OSError("no space")

    writer.failed = noted
    monkeypatch.setattr(AppendedFile, "complete", full)
    writer.close()

    assert [one.what for one in store.Run(writer.path).records(NotCovered)] == ["no space"]


def test_a_held_record_is_written_before_the_one_that_refers_to_it(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    run = store.Run(writer.path)
    writer.hold(Storage, writer.encoded(Storage(0, 64, 4)))
    assert not [*run.records(Storage)]

    writer.append(Outcome("ended", ""))
    assert [*run.records(Storage)] == [Storage(0, 64, 4)]

    writer.hold(Storage, writer.encoded(Storage(1, 128, 4)))
    writer.close()
    assert len([*run.records(Storage)]) == 2
    assert is_own(writer.path)


def test_held_records_stay_in_their_segment(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.begin_segments()
    writer.begin_segment(Segment(0, 0, 0, 0, True))
    writer.hold(Storage, writer.encoded(Storage(0, 64, 4)))
    writer.begin_segment(Segment(1, 1, 0, 0, True))
    writer.hold(Storage, writer.encoded(Storage(0, 64, 4)))
    writer.close()

    names = sorted(path.name for path in writer.path.glob("storages-*"))
    assert len(names) == 2 and names[0] != names[1]


def test_a_full_disk_ends_held_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, failed = store.create(tmp_path, INFO), list[OSError]()
    writer.failed = failed.append
    writer.hold(Storage, writer.encoded(Storage(0, 64, 4)))

    def full(*_: object) -> int:
        raise OSError("no space")

    monkeypatch.setattr(AppendedFile, "append", full)
    writer.append(Outcome("ended", ""))
    monkeypatch.undo()

    assert len(failed) == 1 and not writer.writes
    assert writer.last(Outcome("failed", ""))
    assert [one.status for one in store.Run(writer.path).records(Outcome)] == ["failed"]


def test_a_truncated_last_line_is_ignored(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 2)
    (file,) = writer.path.glob("digests-*")
    file.write_bytes(file.read_bytes()[:-5])

    launches = list(store.Run(writer.path).launches())

    assert [launch.finished for launch in launches] == [True, False]


KILLED = """
import sys; sys.path[:0] = {tests!r}
from pathlib import Path
import test_store as t
writer = t.store.create(Path({runs!r}), t.INFO)
print(writer.path, flush=True)
t.write_launches(writer, 10**9)
"""


def test_a_run_is_readable_after_kill_9(tmp_path: Path) -> None:
    code = KILLED.format(tests=[str(Path(__file__).parent), str(TESTS)], runs=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run = store.Run(Path(process.stdout.readline().strip()))
        while len(list(run.records(LaunchLine))) < 100:
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)

    launches = list(run.launches())

    assert len(launches) >= 100
    assert all(launch.finished for launch in launches[:-1])


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"is not a run: it has no run\.json"):
        store.open_run(str(tmp_path), tmp_path)


def test_a_run_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = store.create(tmp_path, INFO).path / "run.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(INFO, schema=99)))

    with pytest.raises(Problem, match="schema 99; this version reads schema"):
        store.Run(path.parent)


def test_a_run_json_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[1, 2]")

    with pytest.raises(Problem, match="is not a run's description"):
        store.Run(tmp_path)


def test_damage_is_named_with_file_and_line(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.append(NotCovered("a", "b"))
    (file,) = writer.path.glob("uncovered-*")
    file.write_bytes(file.read_bytes() + b"not json\n")

    with pytest.raises(Problem, match=rf"{file.name}:2 is damaged"):
        list(store.Run(writer.path).records(NotCovered))


def test_a_missing_signature_is_damage(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.append(LaunchLine(0, 7, 0, ()))

    with pytest.raises(Problem, match="launch 0 has no signature 7"):
        list(store.Run(writer.path).launches())


def test_a_run_that_is_being_recorded_is_read_up_to_its_first_new_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracing.store.reader.being_recorded", lambda _: True)
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 2)
    run = store.Run(writer.path)
    (process,) = run.processes()
    joiner = run.joiner(process)
    for record in (
        Signature(1, 0, (1, 1, 1), "forward", "cpu", ()),
        LaunchLine(2, 1, 0, ()),
        LaunchLine(3, 0, 0, ()),
    ):
        writer.append(record)

    assert [joiner.launch(row).index for row in run.rows(process)] == [0, 1]
    assert [one.index for one in run.launches()] == [0, 1]
    assert [one.index for one in store.Run(writer.path).launches()] == [0, 1, 2, 3]


def test_near_names_are_suggested_for_an_unknown_run(tmp_path: Path) -> None:
    name = store.create(tmp_path, INFO).path.name

    with pytest.raises(Problem) as problem:
        store.open_run(name[:-1] + "x", tmp_path)

    assert name in problem.value.remedy


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    blocked = tmp_path / "runs"
    blocked.write_text("a file")

    with pytest.raises(Problem, match="cannot write a run below"):
        store.create(blocked, INFO)


def test_a_full_disk_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracing.store.run_folder.RESERVE", 1 << 60)

    with pytest.raises(Problem, match="free disk"):
        store.create(tmp_path, INFO)
    assert not list(tmp_path.iterdir())


def test_latest_names_the_latest_run(tmp_path: Path) -> None:
    store.create(tmp_path, INFO)
    last = store.create(tmp_path, INFO)

    assert store.open_run("latest", tmp_path).path == last.path


@pytest.mark.parametrize("name", ["silu", "silu.py", "/models/silu.py"])
def test_the_name_of_a_program_names_its_newest_run(name: str, tmp_path: Path) -> None:
    store.create(tmp_path, INFO)
    last = store.create(tmp_path, INFO)
    store.create(tmp_path, msgspec.structs.replace(INFO, case="silu2"))

    assert store.open_run(name, tmp_path).path == last.path
    checked = msgspec.structs.replace(INFO, argv=("/venv/bin/tracing", "check", "silu"))
    store.create(tmp_path, checked)
    assert store.open_run(name, tmp_path).path == last.path  # a run of `check` has no launches
    with pytest.raises(Problem, match="there is no run sil,") as raised:
        store.open_run("sil", tmp_path)
    assert f"list runs with `tracing list --runs {tmp_path}`" in (raised.value.remedy or "")
    assert store.listing(Path("runs")) == "list runs with `tracing list`"


def test_every_line_is_read_although_the_compressed_files_have_no_end_mark(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    for start in range(0, 5120, 256):
        writer.extend([LaunchLine(start + i, i % 7, 0, (i, i * 3 % 17, 5)) for i in range(256)])

    indices = [line.index for line in store.Run(writer.path).records(LaunchLine)]

    assert indices == list(range(5120))


def test_a_highly_compressed_file_is_decompressed_in_small_pieces(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.extend([LaunchLine(0, 0, 0, (5, 6))] * 100_000)
    (file,) = writer.path.glob("launches-*")

    pieces = [len(piece) for piece in content(file)]
    assert max(pieces) <= PIECE
    assert sum(pieces) > 100 * file.stat().st_size


@pytest.mark.parametrize("skipped", [0, 1, 4999, 5000, 9999, 10_000])
def test_lines_left_out_at_the_beginning_are_as_many_as_asked(skipped: int, tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.extend([LaunchLine(index, 0, 0, (5, 6)) for index in range(10_000)])
    (file,) = writer.path.glob("launches-*")

    assert [line.index for line in lines(file, LaunchLine, skipped)] == list(range(skipped, 10_000))


def test_lines_that_a_fatal_signal_wrote_come_after_all_others_of_their_process(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 3)
    held = [LaunchLine(index, 0, 0, (5, 6)) for index in (3, 4)]
    lines = b"".join(writer.encoded(one) + b"\n" for one in held)
    (writer.path / file_of(LaunchLine).held(writer.process)).write_bytes(lines + b'{"index":5')

    run = store.Run(writer.path)

    assert [launch.index for launch in run.launches()] == [0, 1, 2, 3, 4]
    (last,) = [launch for launch in run.launches() if launch.index == 4]
    assert (last.kernel.name, last.args[0].before) == ("k", None)
    assert is_own(writer.path)


def test_records_that_are_sealed_are_not_read_from_a_file_that_is_not(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    write_launches(writer, 1)
    other = Kernel(0, "other", "hash", "cuda:90", 4, 3, 1, {}, {})
    (writer.path / file_of(Kernel).held(writer.process)).write_bytes(writer.encoded(other) + b"\n")

    assert [kernel.name for kernel in store.Run(writer.path).records(Kernel)] == ["k"]
