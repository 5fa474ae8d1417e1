"""`tracing passes RUN --graph N` shows the passes of torch.compile over one graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import tracing
from documents.json_keys import require_documented
from handmade.records import new_run

from tracing.model import CompiledGraph, GraphText

TRACED = "%x = placeholder : f32[4]\n%add = _operator.add(%x, 1) : f32[4]\noutput((%add,))\n"
JOINT = "%a = placeholder : f32[4]\n%add = aten.add.Tensor(%a, 1) : f32[4]\noutput((%add,))\n"
FOLDED = JOINT.replace("%add", "%add_1").replace("1)", "2)")
TEXTS = [
    ("pre-grad", "", "", TRACED), ("pre-grad", "end", "", TRACED), ("joint", "", "", JOINT),
    ("joint", "noop", "", JOINT), ("joint", "fold", "mine (train.py:12)", FOLDED),
    ("joint", "end", "", FOLDED),
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    writer = new_run(tmp_path)
    for index, (part, name, code, text) in enumerate(TEXTS):
        writer.append(GraphText(index, "0/0", 0, part, name, writer.blob(text), code))  # type: ignore[arg-type]
    for number, compile_id in enumerate(("0/0", "1/0")):
        writer.append(CompiledGraph(number, compile_id, "forward", *[""] * 6))
    writer.close()
    return writer.path


def test_the_passes_over_a_graph_are_listed(run: Path) -> None:
    listed = tracing("passes", str(run), "--graph", "0", runs=run.parent)
    changed = tracing("passes", str(run), "--graph", "0", "--changed", "--stage", "joint", runs=run.parent)
    asked = tracing("passes", str(run), "--graph", "0", "--json", runs=run.parent).stdout

    assert listed.returncode == 0, listed.stderr
    require_documented(asked, "### With `--graph`")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["graph", "index", *"12345"]
    [row] = changed.stdout.splitlines()[2:]
    assert row.split() == ["4", "joint", "fold", "yes", "3", "3", "mine", "(train.py:12)"]


def test_a_pass_over_a_graph_is_shown_by_a_diff_that_ignores_names(run: Path) -> None:
    shown = tracing("passes", str(run), "--graph", "0", "--pass", "fold", runs=run.parent).stdout
    after = tracing("passes", str(run), "--graph", "0", "--pass", "4", "--after", runs=run.parent).stdout
    asked = tracing("passes", str(run), "--graph", "0", "--pass", "fold", "--json", runs=run.parent).stdout

    assert "joint pass fold (#4), mine (train.py:12)" in shown
    assert [line for line in shown.splitlines()[3:] if line[0] in "+-"] == [
        "-%add = aten.add.Tensor(%a, 1) : f32[4]",
        "+%add = aten.add.Tensor(%a, 2) : f32[4]",
    ]
    assert after == FOLDED
    require_documented(asked, "### With `--graph` and `--pass`")
    assert json.loads(asked)["pass"]["nodes"] == {"before": 3, "after": 3}


def test_a_stage_of_one_pass_is_named_as_it_is_listed(run: Path) -> None:
    shown = tracing("passes", str(run), "--graph", "0", "--pass", "AOTAutograd", runs=run.parent)

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("graph 0/0 forward, AOTAutograd (#2)\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--graph", "2"], "has no graph 2\n  its graphs: 0 (0/0 forward), 1 (1/0 forward)"),
        (["--graph", "1"], "has no passes of graph 1\n  record them: `tracing run "),
        (["--graph", "0", "--op", "tt.dot"], "--op is about kernels, and --graph about a graph"),
        (["--graph", "0", "--pass", "flod"], "this graph has no pass flod\n  nearest: fold"),
        (
            ["--graph", "0", "--stage", "ttir"],
            "this graph has no pass of stage ttir\n  stages: pre-grad, ",
        ),
    ],
)
def test_a_question_about_a_graph_without_an_answer_is_refused(
    words: list[str], said: str, run: Path
) -> None:
    done = tracing("passes", str(run), *words, runs=run.parent)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
