"""A case is a file with build(device) -> Workload; any other file is refused with one clear error."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
import torch
from commands import ROOT, tracing
from safetensors.torch import save_file

from tracing import Workload, store
from tracing.analyze.runs.recording_commands import case_of
from tracing.errors import Problem
from tracing.program.case import build, describe, find_case, known_cases, load_case
from tracing.program.case_options import split_options


def write(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_case_is_found_by_name() -> None:
    case = load_case("silu")

    assert case.name == "silu"
    assert "fused pointwise kernel" in case.description


def test_a_case_is_found_by_path(tmp_path: Path) -> None:
    path = write(
        tmp_path, "def build(device):\n    from tracing import Workload\n    return Workload(len, ([],))\n"
    )

    assert build(load_case(path), "cpu").fn is len


def test_the_case_of_the_docs_takes_the_inputs_of_a_recorded_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/case.md").read_text(), re.DOTALL)
    path = write(tmp_path, next(one for one in examples if "load_file" in one))
    (tmp_path / "kernels.py").write_text("def softmax(x): return x.softmax(-1)\n")
    (tmp_path / "launch").mkdir()
    save_file({"tensor": torch.arange(4.0)}, tmp_path / "launch/x_ptr.safetensors")  # as `tracing repro` does
    monkeypatch.chdir(tmp_path)

    assert torch.equal(build(load_case(path), "cpu").args[0], torch.arange(4.0))


def test_a_case_imports_files_next_to_it_when_it_is_loaded_and_when_it_runs(tmp_path: Path) -> None:
    for name in ("loaded_early", "loaded_late"):
        (tmp_path / f"{name}.py").write_text("def half(x):\n    return x / 2\n")
    late = "def call(x):\n    from loaded_late import half\n    return half(x)\n"
    built = "def build(device):\n    return half, call\n"
    path = write(tmp_path, f"from loaded_early import half\n{late}{built}")

    halved, called = load_case(path).build("cpu")

    assert (halved(4), called(4)) == (2, 2)


@pytest.mark.parametrize(("name", "near"), [("sliu", "silu"), ("zzzz", "silu")])
def test_an_unknown_case_is_refused_with_similar_ones_or_all(name: str, near: str) -> None:
    with pytest.raises(Problem) as problem:
        find_case(name)

    assert near in problem.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"has no build\(device\)"),
        ("build = 1 / 0", r"cannot be imported: ZeroDivisionError: division by zero \(mine\.py:1\)"),
        ("def build(:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        load_case(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 2\nbuild = x / 0", "2 | build = x / 0"), ("x = 2\ndef build(:\n  pass", "2 | def build(:")],
)
def test_the_line_of_a_file_that_cannot_be_imported_is_shown(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(Problem) as problem:
        load_case(write(tmp_path, text))

    assert problem.value.problem.endswith(f"\n    {line}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("1", True),
        ("yes", True),
        ("false", False),
        ("0", False),
        ("No", False),
    ],
)
def test_a_boolean_option_is_understood_as_people_write_it(tmp_path: Path, text: str, value: bool) -> None:
    path = write(tmp_path, "def build(device, backward=False):\n    return backward\n")
    case = load_case(f"{path}:backward={text}")

    assert isinstance(case.build, partial) and case.build.keywords == {"backward": value}


def test_cuda_without_a_gpu_leads_to_device() -> None:
    error = AssertionError("Torch not compiled with CUDA enabled")

    assert "create tensors on `device`" in describe(error, Path("case.py"))
    assert "`device`" not in describe(AssertionError("no"), Path("case.py"))
    assert len(describe(AssertionError("no " * 9999), Path("case.py"))) < 700


def test_a_build_that_returns_no_workload_is_refused(tmp_path: Path) -> None:
    case = load_case(write(tmp_path, "def build(device):\n    return 3\n"))

    with pytest.raises(Problem, match="returned int, not a Workload"):
        build(case, "cpu")


def test_every_case_of_the_repository_has_a_description() -> None:
    assert all(load_case(name).description for name in known_cases())


@pytest.mark.parametrize(
    ("name", "case", "options"),
    [
        ("silu", "silu", []),
        ("gated_mlp:width=32", "gated_mlp", ["width=32"]),
        ("a/b.py:url=http://x:80/y,n=3", "a/b.py", ["url=http://x:80/y", "n=3"]),
        ('b.py:text=it\'s "here", there,n=3', "b.py", ['text=it\'s "here", there', "n=3"]),
        ("odd:name.py", "odd:name.py", []),
    ],
)
def test_the_value_of_an_option_holds_any_characters(name: str, case: str, options: list[str]) -> None:
    assert split_options(name) == (case, options)


ODD = '/a b/c\'s "d" $HOME;e, f\\g'
ODD_CASE = '''
"""A case whose option is text."""
import torch
from tracing import Workload

def build(device, text="", n=1):
    assert text == {text!r}, text
    return Workload(torch.sin, (torch.ones(8, device=device),))
'''


@pytest.mark.soak
def test_an_option_with_blanks_quotes_and_slashes_reaches_a_case_through_every_command(
    tmp_path: Path,
) -> None:
    case = tmp_path / "odd.py"
    case.write_text(ODD_CASE.format(text=ODD))
    name = f"{case}:text={ODD},n=2"

    ran = tracing("run", name, "--no-referee", "--no-passes", runs=tmp_path / "runs")
    stop = tracing("debug", name, "--pass", "cse", "--json", runs=tmp_path / "runs")
    words = json.loads(stop.stdout)["command"]
    again = load_case(next(word for word in words if word.startswith(str(case))))

    assert ran.returncode == 0, ran.stderr
    assert isinstance(again.build("cpu"), Workload)  # which asserts that it is given the text
    run = Path(ran.stdout.strip())
    assert run.parent == tmp_path / "runs"
    assert re.fullmatch(r"odd\+text=[\w.+=,-]*", run.name)
    assert case_of(store.Run(run).info) == str(case.resolve()) + f":text={ODD},n=2"
    counted = tracing("sql", str(run), "select count(*) from launches", runs=tmp_path / "runs")
    assert counted.stdout.splitlines()[-1] == "1", counted.stderr
