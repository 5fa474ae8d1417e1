"""The first stage at which two compilers differ, as text."""

from __future__ import annotations

import pytest
from handmade.records import INFO

from tracing.analyze.graphs.compiler_divergence import ComparedStage, CompilerDivergence, TwoCompilers
from tracing.model import Outcome
from tracing.report.bisect.two_compilers import two_compilers_text

RIGHT, WRONG = Outcome("passed", "agrees"), Outcome("differs", "output")
DIVERGENCE = CompilerDivergence("graph", "graph 0/0 forward", "joint pass fold", ("one\n", "two\n"), "b")


def lines(a: Outcome, b: Outcome, *compared: ComparedStage) -> str:
    answer = TwoCompilers((a, b), compared)
    return "\n".join(map(str, two_compilers_text(answer, INFO.environment, INFO.environment)))


def test_the_first_divergence_is_printed_with_its_diff_and_its_owner() -> None:
    text = lines(WRONG, RIGHT, ComparedStage("graph 0/0 forward", 3, DIVERGENCE))

    assert "the compilers diverge: graph 0/0 forward, joint pass fold, which only b has" in text
    assert text.endswith("-one\n+two")


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (RIGHT, RIGHT, "both results are right"),
        (WRONG, WRONG, "is not right either"),
        (RIGHT, WRONG, "only b is wrong"),
        (WRONG, RIGHT, "the difference is in something that is not recorded"),
    ],
)
def test_what_the_outcomes_mean_is_said(a: Outcome, b: Outcome, says: str) -> None:
    assert says in lines(a, b)
