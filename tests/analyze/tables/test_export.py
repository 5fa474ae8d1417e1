"""Runs as tables: the results of SQL queries, and the contents of Parquet files."""

from __future__ import annotations

import io
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from handmade.jobs import ALL_REDUCE, job
from handmade.records import INFO, META, arg, launch
from handmade.runs import digits, never_recorded, saved

from tracing import store
from tracing.analyze.tables.export import query, write_parquet
from tracing.analyze.tables.rows import COLUMNS
from tracing.errors import Problem
from tracing.model import (
    Argument,
    Digest,
    Kernel,
    LaunchLine,
    LaunchTime,
    PlainValue,
    Result,
    Signature,
    TensorValue,
    Winner,
)
from tracing.store import Run
from tracing.store.remote import fetched, filesystem

duckdb = pytest.importorskip("duckdb", reason="tables need duckdb")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        saved(folder / result, [launch(0, arg("in_ptr0", "in", "x"), arg("out_ptr0", "out", "old", result))])
        for result in ("y", "z")
    ]


def test_one_table_holds_the_launches_of_all_runs(runs: list[Run]) -> None:
    columns, rows = query(runs, "select kernel, count(*) from launches group by kernel")

    assert (columns[0], rows) == ("kernel", [("triton_poi_fused_mul_0", 2)])


def test_the_columns_of_a_launch_are_those_of_its_line_and_of_its_kernel(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0, arg("x", "in", "x"), grid=2), launch(1, num_warps=8)])

    what = (
        "run, rank, \"index\", kernel, target, grid, num_warps, constants['XBLOCK'], stream, phase, finished"
    )
    _, rows = query([run], f"select {what} from launches")

    name = "triton_poi_fused_mul_0"
    assert rows == [
        (run.name, 0, 0, name, "cuda:90", [2, 1, 1], 4, "256", 0, "forward", True),
        (run.name, 0, 1, name, "cuda:90", [1, 1, 1], 8, "256", 0, "forward", True),
    ]


def test_a_launch_without_digests_did_not_finish(tmp_path: Path) -> None:
    run = saved(tmp_path, [launch(0, arg("x", "in", "x")), launch(1, arg("x", "in", "x"))])
    never_recorded(run.path, "digests")

    assert query([run], "select finished from launches")[1] == [(False,), (False,)]


def test_tables_are_filled_in_a_temporary_folder_whose_name_has_a_quote(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    assert query(runs, "select count(*) from launches")[1] == [(2,)]
    assert query(runs, "select count(*) from arguments")[1] == [(4,)]


def test_arguments_have_their_digests(runs: list[Run]) -> None:
    _, rows = query(runs[:1], "select name, after, shape from arguments where modified")

    assert rows == [("out_ptr0", digits("y"), [4])]


def test_each_run_is_compared_with_the_first(runs: list[Run]) -> None:
    what = "kind, kernel, argument, a, b, accused, accused_name, certain"
    _, rows = query(runs, f"select {what} from divergences")

    name = "triton_poi_fused_mul_0"
    assert rows == [("output", name, "out_ptr0", digits("y"), digits("z"), "kernel", name, True)]


def test_settings_that_differ_are_listed_for_both_runs(tmp_path: Path) -> None:
    launches = (launch(0, arg("x", "in", "x"), num_warps=warps, grid=warps) for warps in (4, 8))

    _, rows = query(
        [saved(tmp_path / str(number), [one]) for number, one in enumerate(launches)],
        "select kind, a, b, accused from divergences",
    )

    settings = ("grid=(4, 1, 1), num_warps=4", "grid=(8, 1, 1), num_warps=8")
    assert rows == [("launch", *settings, "configuration")]


def test_runs_with_one_name_are_named_with_their_folders(runs: list[Run], tmp_path: Path) -> None:
    other = Run(shutil.copytree(runs[0].path, tmp_path / "other" / runs[0].name))

    _, rows = query([runs[0], other, runs[0]], "select run, count(*) from launches group by all order by all")

    assert rows == [(f"other/{other.name}", 1), (f"y/{runs[0].name}", 1)]


@pytest.mark.parametrize(
    ("sql", "problem", "tables"),
    [
        ("select kernel from lanches", "lanches does not exist", list(COLUMNS)),
        ("select nothing from launches", "nothing", ["launches"]),
        ("selec kernel from launches", "syntax error", ["launches"]),
        ("selec 1", "syntax error", []),
    ],
)
def test_a_wrong_query_is_refused_with_the_tables_that_help(
    runs: list[Run], sql: str, problem: str, tables: list[str]
) -> None:
    with pytest.raises(Problem, match=problem) as refused:
        query(runs, sql)

    assert [name for name in COLUMNS if f"{name}(run, " in refused.value.remedy] == tables


def test_parquet_files_hold_the_same_rows(runs: list[Run], tmp_path: Path) -> None:
    files = write_parquet(runs, tmp_path / "new")

    count = duckdb.connect().execute(f"select count(*) from '{tmp_path}/new/arguments.parquet'").fetchone()
    assert [file.stem for file in files] == list(COLUMNS)
    assert count == (4,)


def test_redacted_tables_hold_no_path_and_no_name(tmp_path: Path) -> None:
    info = msgspec.structs.replace(
        INFO,
        case="gpt+data=/home/ada/set",
        path="/home/ada/cases/gpt.py",
        environment=msgspec.structs.replace(INFO.environment, host="babbage"),
    )
    writer = store.create(tmp_path / "runs", info)
    args = (Argument("file", value="/home/ada/set/x.bin"), Argument("who", value="by ada on babbage, 1/2"))
    writer.append(Kernel(0, "add", "0" * 64, "cuda:90", 4, 3, 1, {"ROOT": "/data/ada"}, {}))
    writer.append(Signature(0, 0, (1, 1, 1), "forward", "cpu", args))
    writer.append(LaunchLine(0, 0, 0, ()))
    writer.append(Result("output", PlainValue("str", "'~/secrets/key.pem'")))
    writer.append(Result("output['/data/of Grace']", PlainValue("str", "'/data/of Grace/x y.bin'")))
    writer.close()

    files = write_parquet([Run(writer.path)], tmp_path / "tables", anonymous=True)

    content = str([duckdb.connect().execute(f"select * from '{file}'").fetchall() for file in files])
    assert "gpt-1" in content and "'PATH'" in content and "by USER on HOST, 1/2" in content
    for word in ("ada", "babbage", "/home", "set", "pem", "data", "Grace", "bin"):
        assert word not in content, content


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A job of two ranks, one of which an all-reduce left with something else."""
    words = ("y", "z")
    return job(tmp_path_factory.mktemp("job"), [], [], landmarks=[[(0, ALL_REDUCE, word)] for word in words])


def test_a_query_finds_the_collective_that_gave_ranks_different_bits(trained: Run) -> None:
    disagreed = "select name, ordinal from landmarks group by all having count(distinct results) > 1"

    assert query([trained], disagreed)[1] == [(ALL_REDUCE, 0)]


def test_results_winners_and_times_are_tables_by_rank(trained: Run) -> None:
    (process,) = {path.name.removeprefix("landmarks") for path in trained.path.glob("landmarks-*-1-*")}
    for kind, record in (
        ("results", Result("output", TensorValue(META, Digest("f" * 32, l1=2.5)))),
        ("winners", Winner("triton", "k", "s", ("n=4",), {"BLOCK": 16})),
        ("times", LaunchTime(0, 1.5)),
    ):
        (trained.path / f"{kind}{process}").write_bytes(msgspec.json.encode(record) + b"\n")

    _, rows = query(
        [trained],
        "select r.rank, r.l1, w.config['BLOCK'], t.wall_us from results r, winners w, times t",
    )

    assert rows == [(1, 2.5, "16", 1.5)]


def test_no_query_is_refused(runs: list[Run]) -> None:
    with pytest.raises(Problem, match="there is no query"):
        query(runs, " ")


@pytest.fixture(scope="module")
def bucket(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An object store with the first run, and with the tables of both."""
    folder = tmp_path_factory.mktemp("tables")
    write_parquet(runs, folder)
    store = filesystem("memory://")
    store.put(str(folder), "memory://bucket/tables", recursive=True)
    store.put(str(runs[0].path), "memory://bucket/runs/first", recursive=True)
    yield "memory://bucket"
    store.rm("memory://bucket", recursive=True)


def test_parquet_on_an_object_store_is_queried_without_a_download(bucket: str) -> None:
    _, rows = query(
        [], "select name, count(*) from arguments group by name order by name", [f"{bucket}/tables"]
    )

    assert rows == [("in_ptr0", 2), ("out_ptr0", 2)]


def test_a_run_on_an_object_store_is_copied_without_its_blobs(bucket: str, tmp_path: Path) -> None:
    run = fetched(f"{bucket}/runs/first", tmp_path)

    assert query([run], "select name, after from arguments where modified")[1] == [("out_ptr0", digits("y"))]
    assert not (run.path / "blobs").exists()


def test_recorded_runs_and_written_tables_are_asked_together(runs: list[Run], bucket: str) -> None:
    _, rows = query(runs[:1], "select count(*) from launches", [f"{bucket}/tables"])

    assert rows == [(3,)]


def test_an_address_without_tables_is_refused_with_the_command_that_writes_them(bucket: str) -> None:
    with pytest.raises(Problem, match="the tables cannot be read") as problem:
        query([], "select * from launches", [f"{bucket}/nothing"])

    assert "tracing export" in problem.value.remedy


@pytest.mark.parametrize(
    ("address", "message"),
    [("nowhere://x/run", "there is no kind of address nowhere://"), ("memory://none", "cannot be read")],
)
def test_an_address_that_cannot_be_read_is_refused(address: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=message):
        fetched(address, tmp_path)


def test_an_address_with_a_missing_package_is_refused_with_what_to_install(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(sys.modules, "s3fs", None)

    with pytest.raises(Problem, match="s3:// cannot be read") as problem:
        fetched("s3://bucket/run", tmp_path)

    assert "pip install s3fs" in problem.value.remedy


class Ranges(SimpleHTTPRequestHandler):
    """A web server that gives parts of files, as object stores do."""

    def send_head(self) -> Any:
        path, wanted = Path(self.translate_path(self.path)), self.headers.get("Range", "")
        if not wanted or not path.is_file():
            return super().send_head()
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        content = path.read_bytes()
        part = content[int(first) : int(last or len(content)) + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        return io.BytesIO(part)

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """The address of a web server, and of `tmp_path` there."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_tables_and_runs_on_a_web_server_are_read(runs: list[Run], web: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="https:// needs aiohttp")
    write_parquet(runs, tmp_path / "tables")
    shutil.copytree(runs[0].path, tmp_path / "first")

    (tmp_path / "copies").mkdir()
    assert query([], "select count(*) from launches", [f"{web}/tables"])[1] == [(2,)]
    assert [one.index for one in fetched(f"{web}/first", tmp_path / "copies").launches()] == [0]
