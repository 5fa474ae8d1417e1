"""The objects that commands print with --json have exactly the keys that docs/json.md documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import DATA, ROOT, tracing
from jobs import job
from recorded_runs import recorded
from records import arg, compiled, launch, new_run

from tracing import store
from tracing.record.outputs import Keep

IR = "module {\n  tt.func public @kernel() {\n    tt.return\n  }\n}\n"
OTHER = IR.replace("tt.return", "gpu.barrier\n    tt.return")
PAGE = (ROOT / "docs/json.md").read_text()


def documented(title: str) -> set[str]:
    """The keys in the first table after a heading: `runs[].name`."""
    section = PAGE.split(f"\n{title}\n", 1)[1]
    table = re.search(r"\| key \| value \|\n\|---\|---\|\n((?:\|.*\n?)+)", section)
    assert table is not None
    return set(re.findall(r"^\| `([^`]+)` \|", table[1], re.MULTILINE))


def printed(value: object, keys: set[str], path: str = "") -> Iterator[str]:
    """The keys of a value, as the page writes them."""
    if f"{path}.*" in keys and path:
        yield f"{path}.*"
    elif isinstance(value, dict):
        for name, inner in value.items():
            key = f"{path}.{name}" if path else name
            yield f"{key}.*" if f"{key}.*" in keys else key
            yield from printed(inner, keys, key)
    elif isinstance(value, list):
        for inner in value:
            yield from printed(inner, keys, f"{path}[]" if f"{path}.*" not in keys else path)


def require_documented(text: str, title: str, *unset: str) -> None:
    """Every key is on the page, and every key of the page occurs.

    unset -- keys that this answer does not have
    """
    keys = documented(title)

    assert set(printed(json.loads(text), keys)) == keys - set(unset)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[store.Run, store.Run]:
    """Two runs of a case, of which one is launched with another grid."""
    runs = tmp_path_factory.mktemp("runs")
    cases = (f"{DATA / 'faults.py'}:fault={fault}" for fault in ("none", "grid"))
    a, b = (recorded(case, runs, keep=Keep(inputs=True)) for case in cases)
    return a, b


def test_run_list_and_show(tmp_path: Path) -> None:
    done = tracing("run", "silu", "--no-passes", "--json", runs=tmp_path)
    require_documented(done.stdout, "## `tracing run`")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")

    require_documented(tracing("list", "--json", runs=tmp_path).stdout, "## `tracing list`")

    path = json.loads(done.stdout)["run"]
    shown = tracing("show", path, "--json", runs=tmp_path).stdout
    unset = [f"not_covered[].{key}" for key in ("what", "setting")]
    require_documented(shown, "## `tracing show`", *(unset if not json.loads(shown)["not_covered"] else ()))


def test_show_of_one_launch(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("show", str(pair[0].path), "--launch", "1", "--json", runs=pair[0].path.parent)

    assert [one["index"] for one in json.loads(done.stdout)["launches"]] == [1]


def test_winners(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("winners", str(pair[0].path), "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing winners`")


def test_passes_of_one_run_and_of_two(tmp_path: Path) -> None:
    paths = []
    for name, left in (("a", OTHER), ("b", IR)):
        writer = new_run(tmp_path / name)
        compiled(writer, "kernel", IR, ("ttir", "cse", left))
        writer.close()
        paths.append(str(writer.path))

    require_documented(tracing("passes", paths[0], "--json", runs=tmp_path).stdout, "## `tracing passes`")
    done = tracing("passes", *paths, "--json", runs=tmp_path)
    require_documented(done.stdout, "### Of two runs")
    assert done.returncode == json.loads(done.stdout)["status"] == 1


def test_what_prints_text_is_refused_with_json(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("passes", str(pair[0].path), "--op", "tt.load", "--json", runs=pair[0].path.parent)

    assert (done.returncode, "--op prints text" in done.stderr) == (2, True)


def test_repeat(tmp_path: Path) -> None:
    case = str(DATA / "poisoned.py")
    done = tracing("repeat", case, "--times", "2", "--perturb", "--deterministic", "--json", runs=tmp_path)

    require_documented(done.stdout, "## `tracing repeat`")
    assert done.returncode == json.loads(done.stdout)["status"] == 1


def test_ranks(tmp_path: Path) -> None:
    ones = [[launch(0, arg("x", "in", "x"), num_warps=warps)] for warps in (4, 4, 8)]
    done = tracing("ranks", str(job(tmp_path, *ones).path), "--json", runs=tmp_path)

    require_documented(done.stdout, "## `tracing ranks`")
    assert json.loads(done.stdout)["partings"][0]["left"] == [2]


def test_replay(pair: tuple[store.Run, store.Run]) -> None:
    a, b = (str(one.path) for one in pair)
    done = tracing("replay", a, "--against", b, "--times", "2", "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing replay`")


def test_swap(pair: tuple[store.Run, store.Run]) -> None:
    done = tracing("swap", *(str(one.path) for one in pair), "--anyway", "--json", runs=pair[0].path.parent)

    require_documented(done.stdout, "## `tracing swap`")
    assert [one["kernel"] for one in json.loads(done.stdout)["to_blame"]] == ["scale"]


# ---- what compiles


@pytest.fixture(scope="module")
def compiled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("compiled")
    assert tracing("run", "silu", "--keep-inputs", runs=runs).returncode == 0
    return store.recorded(runs)[0]


def test_lit_and_resume(compiled_run: Path) -> None:
    passes = json.loads(tracing("passes", str(compiled_run), "--json", runs=compiled_run.parent).stdout)
    kernel = passes["kernels"][0]
    name = next(one["name"] for one in kernel["passes"] if one["stage"] == "ttgir" and one["changed"])
    options = (str(compiled_run), "--kernel", kernel["hash"][:12], "--pass", name, "--json")

    lit = tracing("lit", *options, runs=compiled_run.parent)
    resume = tracing("resume", *options, "--to", "llir", runs=compiled_run.parent)

    require_documented(lit.stdout, "## `tracing lit`")
    require_documented(resume.stdout, "## `tracing resume`")


def test_repro(compiled_run: Path, tmp_path: Path) -> None:
    options = (str(compiled_run), "--launch", "0", "--to", str(tmp_path / "repro"), "--json")

    require_documented(tracing("repro", *options, runs=compiled_run.parent).stdout, "## `tracing repro`")


@pytest.mark.parametrize(("judge", "status"), [("true", 0), ("false", 2)])
def test_bisect(judge: str, status: int, compiled_run: Path) -> None:
    (kernel, *_) = {one.kernel.hash for one in store.Run(compiled_run).launches()}
    options = ("--kernel", kernel[:12], "--json")
    command = ("bisect", str(compiled_run), *options, "--", judge, "{ttgir}")
    done = tracing_before_command(*command, runs=compiled_run.parent)

    require_documented(done.stdout, "## `tracing bisect`", *(LAYERS if status == 0 else ()))
    assert done.returncode == json.loads(done.stdout)["status"] == status


LAYERS = ("layers[].layer", "layers[].answer", "layers[].step.*", "layers[].because")


def tracing_before_command(*words: str, runs: Path) -> subprocess.CompletedProcess[str]:
    """As `tracing`, for commands that pass on what follows `--`."""
    at = words.index("--")
    line = [sys.executable, "-m", "tracing", *words[:at], "--runs", str(runs), *words[at:]]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_reduce(compiled_run: Path) -> None:
    (kernel, *_) = {one.kernel.hash for one in store.Run(compiled_run).launches()}
    options = ("--kernel", kernel[:12], "--pass", "convert-triton-to-tritongpu", "--json")
    judge = ("sh", "-c", "! grep -q ttg.num-warps $0", "{after}")
    done = tracing_before_command(
        "reduce", str(compiled_run), *options, "--", *judge, runs=compiled_run.parent
    )

    require_documented(done.stdout, "## `tracing reduce`")
