"""What wrote a parameter, and its gradient, where the ranks of a job differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from handmade.jobs import job
from handmade.runs import Operators

from tracing.analyze.ranks.rank_divergence import RankDivergence
from tracing.analyze.ranks.ranks import RankComparison
from tracing.model import Record
from tracing.report.ranks import divergence_text

BEFORE, STEP = "before SGD.step", "SGD.step"
WEIGHT, GRADIENT, OTHER = 3, 4, 5  # storages


def called(*calls: tuple[str, Sequence[int], Sequence[int], str]) -> list[Record]:
    """Operators before the first launch: name, storages read, storages written, other arguments."""
    made = Operators()
    for name, reads, writes, arguments in calls:
        made.call(0, name, reads, writes, arguments=arguments)
    return made.records


DRAWN = ("aten::uniform_", [WEIGHT], [WEIGHT], "")
SENT = ("c10d::broadcast_", [WEIGHT], [WEIGHT], "")
SCALED = ("aten::mul_", [WEIGHT], [WEIGHT], "other=1.5")


def first_update(tmp_path: Path, *ranks: list[Record]) -> RankComparison:
    landmarks = [[(0, BEFORE, f"w{rank}"), (0, STEP, f"v{rank}")] for rank in range(len(ranks))]
    facts = {"storages": (WEIGHT,), "names": ("head.weight",), "operators": 9}
    comparison = RankComparison(job(tmp_path, [], [], landmarks=landmarks, records=ranks, **facts))
    assert list(comparison) == []
    return comparison


def test_a_parameter_that_differed_is_named_with_the_operator_that_one_rank_calls(tmp_path: Path) -> None:
    (own,) = first_update(tmp_path, called(DRAWN, SENT), called(DRAWN, SENT, SCALED)).own

    assert own.name == "parameter 0, head.weight"
    assert own.writes is not None
    assert own.writes.by_rank == {0: "", 1: "aten::mul_(other=1.5)"}


def test_an_operator_before_a_broadcast_does_not_explain_a_difference(tmp_path: Path) -> None:
    flat = ("aten::cat", [WEIGHT], [OTHER], ""), ("c10d::broadcast_", [OTHER], [OTHER], "")
    copied = *flat, ("aten::copy_", [OTHER], [WEIGHT], "")

    for sent in ((SENT,), copied):
        (own,) = first_update(tmp_path / sent[-1][0], called(DRAWN, SCALED, *sent), called(DRAWN, *sent)).own
        assert own.writes is None


def test_a_parameter_without_records_of_operators_has_only_its_name(tmp_path: Path) -> None:
    (own,) = first_update(tmp_path, [], []).own

    assert (own.name, own.writes) == ("parameter 0, head.weight", None)


def stepped(tmp_path: Path, *ranks: list[Record]) -> RankDivergence:
    landmarks = [[(0, BEFORE, "w"), (0, STEP, f"v{rank}")] for rank in range(len(ranks))]
    facts = {"storages": (WEIGHT,), "gradients": (GRADIENT,), "operators": 9}
    (divergence,) = RankComparison(job(tmp_path, [], [], landmarks=landmarks, records=ranks, **facts))
    return divergence


MADE = ("aten::mm", [OTHER], [GRADIENT], "")
SUMMED = ("c10d::allreduce_", [GRADIENT], [GRADIENT], "")
ELSEWHERE = ("c10d::allreduce_", [OTHER], [OTHER], "")
DIVIDED = ("aten::div_", [GRADIENT], [GRADIENT], "other=2")


def test_a_gradient_that_one_rank_did_not_reduce_is_reported_with_its_writer(tmp_path: Path) -> None:
    gradients = stepped(tmp_path, called(MADE, SUMMED, DIVIDED), called(MADE, ELSEWHERE, DIVIDED)).gradients

    assert {rank: (one.reduced, one.writer) for rank, one in gradients.items()} == {
        0: (True, "c10d::allreduce_"),
        1: (False, "aten::mm"),
    }


@pytest.mark.parametrize(
    "calls", [(MADE, SUMMED), (MADE, ELSEWHERE, ("aten::copy_", [OTHER], [GRADIENT], ""))]
)
def test_gradients_of_one_origin_explain_no_difference(calls: Sequence[Any], tmp_path: Path) -> None:
    divergence = stepped(tmp_path, called(*calls), called(*calls))

    assert (divergence.gradients, divergence.writes) == ({}, None)


def test_a_gradient_that_no_rank_reduced_is_reported(tmp_path: Path) -> None:
    text = "\n".join(map(str, divergence_text(stepped(tmp_path, called(MADE), called(MADE)), first=True)))

    assert "no collective reduced its gradient on any rank" in text and "aten::mm" not in text


def test_an_operator_that_one_rank_calls_on_the_reduced_gradient_is_named(tmp_path: Path) -> None:
    clipped = ("aten::clamp_", [GRADIENT], [GRADIENT], "min=0")
    divergence = stepped(tmp_path, called(MADE, SUMMED, DIVIDED), called(MADE, SUMMED, DIVIDED, clipped))

    assert divergence.writes is not None and divergence.gradients == {}
    assert divergence.writes.by_rank == {0: "", 1: "aten::clamp_(min=0)"}


def test_an_operator_that_one_rank_calls_on_the_parameter_itself_is_named_without_the_update(
    tmp_path: Path,
) -> None:
    poked = ("aten::add_", [WEIGHT], [WEIGHT], "other=1"), ("aten::copy_", [WEIGHT], [WEIGHT], "")
    updated = ("aten::add_", [WEIGHT, GRADIENT], [WEIGHT], "alpha=-1")
    divergence = stepped(tmp_path, called(MADE, SUMMED, updated), called(MADE, SUMMED, *poked, updated))

    assert divergence.own_writes is not None and divergence.writes is None
    assert divergence.own_writes.by_rank == {0: "", 1: "aten::add_(other=1)"}
    text = "\n".join(map(str, divergence_text(divergence, first=True)))
    assert "the parameter itself: only rank 1 wrote it by aten::add_(other=1)" in text
