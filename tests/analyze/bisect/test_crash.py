"""Which earlier pass provokes a death, with compiles that are made up."""

from __future__ import annotations

from collections import Counter

import pytest

from tracing.analyze.bisect.crash import CrashBuilds, Died, Provoked, provoking, provoking_in_llvm
from tracing.analyze.bisect.leave_out import Instance
from tracing.analyze.bisect.search import FirstBad, Undecided, Verdict
from tracing.analyze.bisect.search_events import Searching

PASSES = [Instance(index, name, changed=True) for index, name in enumerate(("inline", "coalesce", "cse"))]


def test_the_pass_without_which_the_compile_survives_is_named() -> None:
    tried = []
    builds = CrashBuilds(lambda dropped, _: None if 1 in dropped else Died(True, "assertion"), 1)

    seen = list(provoking(PASSES, builds, lambda: tried.append(None)))

    assert isinstance(seen[-1], Provoked) and isinstance(seen[-1].answer, FirstBad)
    assert seen[-1].answer.step.name == "coalesce"
    assert [one.most for one in seen if isinstance(one, Searching)] == [len(tried)] == [3]


def test_a_death_that_comes_from_the_middle_alone_is_searched_from_the_source() -> None:
    def die(dropped: frozenset[int], from_source: bool) -> Died | None:
        return None if (2 if from_source else 1) in dropped else Died(True, "assertion")

    seen = list(provoking(PASSES, CrashBuilds(die, 1), lambda: None))

    assert sum(isinstance(one, Searching) for one in seen) == 2
    assert isinstance(seen[-1], Provoked) and isinstance(seen[-1].answer, FirstBad)
    assert seen[-1].answer.step.name == "cse"


def test_a_death_that_does_not_come_each_time_is_not_decided() -> None:
    calls = Counter[frozenset[int]]()  # from the source

    def die(dropped: frozenset[int], from_source: bool) -> Died | None:
        calls[dropped] += from_source
        survives = 1 in dropped and (not from_source or calls[dropped] == 2)
        return None if survives else Died(True, "assertion")

    *_, last = provoking(PASSES, CrashBuilds(die, 1), lambda: None)

    assert isinstance(last, Provoked) and isinstance(last.answer, Undecided)


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (["good", "good", "bad", "bad"], 1),
        (["bad", "bad", "bad", "bad"], "without all of them it dies as well"),
        (["skip", "skip", "skip", "bad"], "what is left without them cannot be compared"),
        (["good", "skip", "skip", "bad"], "some builds die otherwise"),
    ],
)
def test_of_llvms_passes_the_one_at_the_border_is_named_or_the_reason(
    verdicts: list[Verdict], answer: int | str
) -> None:
    assert provoking_in_llvm(3, lambda on: verdicts[on]) == answer
