"""A run from a stranger: endless files give one error, and blobs have the digests that their names state."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import zstandard
from handmade.records import INFO, kernel
from handmade.small_runs import small_run

from tracing import store
from tracing.errors import Problem
from tracing.model import Kernel, LaunchLine, NotCovered, PackedBlob
from tracing.store.run_files import LINE, RUN_JSON, TEXT, file_name, write


def damage(path: Path, content: bytes) -> None:
    path.write_bytes(zstandard.compress(content) if path.suffix == ".zst" else content)


@pytest.mark.parametrize("kind", ["fifo", "folder", "/dev/zero", "a link to itself"])
@pytest.mark.parametrize("name", ["run.json", "kernels-*.ndjson", "launches-*.ndjson.zst"])
def test_only_regular_files_are_opened(kind: str, name: str, tmp_path: Path) -> None:
    run = small_run(tmp_path)
    (path,) = run.glob(name)
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind if kind == "/dev/zero" else path)

    with pytest.raises(Problem, match=r"regular file|symbolic links|run\.json"):
        list(store.Run(run).launches())


def test_a_large_description_is_not_read(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    os.truncate(run / "run.json", 40 * RUN_JSON)

    with pytest.raises(Problem, match=f"more than {RUN_JSON >> 20} MiB"):
        store.Run(run)


def test_a_line_without_an_end_is_not_read(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    (path,) = run.glob("kernels-*")
    os.truncate(path, LINE + (1 << 20))  # zeros

    with pytest.raises(Problem, match=f"a line has more than {LINE >> 20} MiB"):
        list(store.Run(run).launches())


def test_a_few_bytes_do_not_become_gigabytes_of_records(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    (path,) = run.glob("launches-*")
    line = b'{"index":0,"signature":0,"stream":0,"storages":[5,6]}\n'
    packer = zstandard.ZstdCompressor().compressobj()
    path.write_bytes(b"".join(packer.compress(line * 20_000) for _ in range(100)) + packer.flush())
    assert path.stat().st_size < 30_000

    with pytest.raises(Problem, match="times its size"):
        sum(1 for _ in store.Run(run).records(LaunchLine))


def test_a_few_bytes_do_not_become_gigabytes_of_text(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    packer = zstandard.ZstdCompressor().compressobj()
    bomb = b"".join(packer.compress(bytes(1 << 24)) for _ in range((TEXT >> 24) + 1)) + packer.flush()
    (run / "blobs" / f"{'0' * 32}.zst").write_bytes(bomb)
    assert len(bomb) < 40_000

    with pytest.raises(Problem, match=f"unpacks to more than {TEXT >> 20} MiB"):
        store.Run(run).text("0" * 32)


def test_every_flipped_bit_of_a_blob_is_noticed(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    name = writer.blob(bytes(random.Random(0).randbytes(500)) + b"tt.func" * 100)
    path = writer.path / "blobs" / f"{name}.zst"
    whole, run = path.read_bytes(), store.Run(writer.path)

    for bit in range(0, 8 * len(whole), 7):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            content = run.bytes(name)
        except Problem:
            continue
        assert store.blob_name(content) == name  # a bit of zstd's header that means nothing


@pytest.mark.parametrize("name", ["../run", "a" * 31, "A" * 32, "a" * 32 + "\n", "..", "\0" * 32])
def test_a_blob_is_named_by_a_digest(name: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="no name of a blob"):
        store.Run(small_run(tmp_path)).text(name)


@pytest.mark.parametrize(
    ("pack", "start", "size"),
    [("../secret", 0, 6), ("p", -3, 3), ("p", 3, -1), ("p", 0, 7), ("p", 0, 1 << 62)],
)
def test_parts_of_packs_lie_in_packs_of_the_run(pack: str, start: int, size: int, tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    for path in (writer.path / "secret.zst", writer.path / "blobs/p.zst"):
        path.write_bytes(zstandard.compress(b"secret"))
    name = store.blob_name(b"secret"[start : start + size])
    writer.append(PackedBlob(name, pack, start, size))

    with pytest.raises(Problem, match="pack"):
        store.Run(writer.path).text(name)


def test_a_line_of_a_thousand_brackets_is_damaged(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    (path,) = run.glob("kernels-*")
    damage(path, b'{"constants":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")

    with pytest.raises(Problem, match=r"ndjson:1 is damaged"):
        list(store.Run(run).records(Kernel))


def test_text_that_cannot_be_encoded_is_recorded_with_escapes(tmp_path: Path) -> None:
    writer = store.create(tmp_path, INFO)
    writer.append(NotCovered("half \ud800 of a pair"))

    assert [one.what for one in store.Run(writer.path).records(NotCovered)] == [r"half \ud800 of a pair"]


def test_files_of_other_names_are_no_records(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    for name in ("kernels-.ndjson", "kernels-host.ndjson", "kernels-h-0-x.ndjson", "kernels-[a]-0-1.ndjson"):
        (run / name).write_text("{}\n")

    assert [one.name for one in store.Run(run).records(Kernel)] == ["k"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    writer, outside = store.create(tmp_path / "runs", INFO), tmp_path / "outside"
    (writer.path / "blobs").rmdir()
    outside.mkdir()
    (writer.path / "blobs").symlink_to(outside)

    with pytest.raises(Problem, match="a link"):
        writer.blob("text")

    target = tmp_path / "file"
    target.write_text("mine")
    (outside / "link").symlink_to(target)
    write(outside / "link", b"theirs")
    assert (target.read_text(), (outside / "link").read_text()) == ("mine", "theirs")


@pytest.mark.parametrize("name", ["../../etc/x", "/etc/x", "..", ".bashrc", "", "a" * 300, "a\0b", "a\nb"])
def test_a_name_of_a_run_is_the_name_of_one_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / file_name(name)
    path.write_text("")

    assert list(tmp_path.iterdir()) == [path]
    assert not path.name.startswith(".")


def test_kernels_keep_their_names() -> None:
    assert file_name(kernel().name) == kernel().name
