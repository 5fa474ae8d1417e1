"""What a judgement says of the passes before Inductor, in findings that are built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracing.analyze.graphs.changing_passes import EarlierPass
from tracing.analyze.judge.findings import TracedOff, WrongElements
from tracing.analyze.judge.judgement import RunJudgement
from tracing.report.judge.judgement import judgement_text

WRONG = WrongElements("output 0", "output 0", "mul", 1, 1, (0,), 2.0, 1.0, 99.0, 1.0)
OTHERWISE = "a decomposition or another step of AOTAutograd"


def said(*passes: EarlierPass, wrong: WrongElements = WRONG) -> list[str]:
    text = judgement_text(RunJudgement((), (TracedOff(0, wrong, passes=passes),), ()), ())
    return [line.strip() for line in text]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (("a", "b"), ("c",), "changes 2 lines of the graph to 1"),
        (("a",), (), "removes 1 line of the graph"),
        ((), ("c",), "adds 1 line to the graph"),
        ((), (), "changes the order of nodes"),
    ],
)
def test_a_suspect_is_printed_with_its_code_and_the_lines_that_it_changes(
    before: tuple[str, ...], after: tuple[str, ...], change: str
) -> None:
    lines = said(EarlierPass(3, "joint pass fold", before, after, "mine (train.py:12)"))

    first = lines.index(f"suspect   joint pass fold, mine (train.py:12), {change}")
    shown = [*(f"before    {one}" for one in before), *(f"after     {one}" for one in after)]
    assert lines[first + 1 :][: len(shown) + 1] == [*shown, f"or        {OTHERWISE}"]


def test_the_passes_of_the_program_are_the_first_suspects() -> None:
    lines = said(
        EarlierPass(3, "joint pass noop", ("a",), ()),
        EarlierPass(4, "joint pass fold", ("b",), (), "mine (train.py:12)"),
    )

    suspects = [line for line in lines if line.startswith("suspect")]
    assert [one.split()[3].rstrip(",") for one in suspects] == ["fold", "noop"]


def test_where_every_joint_pass_is_cleared_a_decomposition_is_the_suspect() -> None:
    lines = said(EarlierPass(3, "joint pass fold", (), (), cleared=True))

    suspect = f"{OTHERWISE}, as no pre-grad or joint pass changes how output 0 is computed"
    assert f"suspect   {suspect}" in lines
    assert "cleared   joint pass fold: no change of how output 0 is computed" in lines


def test_the_pass_that_gives_a_result_its_wrong_dtype_is_no_suspect_among_others() -> None:
    wrong = replace(WRONG, dtype="float32 [4], not float16 [4]")

    lines = said(
        EarlierPass(3, "joint pass noop", ("a",), (), cleared=True),
        EarlierPass(4, "joint pass fold", ("b",), (), changes_dtype=True),
        wrong=wrong,
    )

    assert "so        this pass gives output 0 its wrong dtype" in lines
    assert not [one for one in lines if one.startswith("or ")]
    assert "cleared   joint pass noop: no change of the dtype and shape of output 0" in lines


def test_every_operator_whose_decomposition_may_be_wrong_is_named() -> None:
    finding = TracedOff(0, WRONG, passes=(), first="add", operators=("torch.add", *"abc"))

    lines = [line.strip() for line in judgement_text(RunJudgement((), (finding,), ()), ())]

    suspect = "the decomposition of torch.add, or of a, b, c, which it reads"
    assert (
        f"suspect   {suspect}, or another step of AOTAutograd, as no pre-grad or joint pass changes the graph"
        in lines
    )
    assert "graph     0: mul; the first node that differs is add" in lines


def test_the_partitioner_is_a_suspect_where_a_gradient_is_wrong() -> None:
    lines = said(wrong=replace(WRONG, name="gradient of input 1"))

    suspect = "a decomposition, the partitioner, or another step of AOTAutograd"
    assert f"suspect   {suspect}, as no pre-grad or joint pass changes the graph" in lines
