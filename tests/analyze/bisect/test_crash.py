"""The search for the earlier pass that provokes a crash, with hand-made compiles."""

from __future__ import annotations

from collections import Counter

import pytest

from tracing.analyze.bisect.crash import CrashBuilds, CrashPoint, Provoked, provoking, provoking_in_llvm
from tracing.analyze.bisect.layers import LLVM
from tracing.analyze.bisect.leave_out import Instance
from tracing.analyze.bisect.search import BuildTried, JudgeAnswer, Step
from tracing.analyze.bisect.search_events import Searching

PASSES = [Instance(index, name, changed=True) for index, name in enumerate(("inline", "coalesce", "cse"))]


def test_the_pass_without_which_the_compile_survives_is_named() -> None:
    builds = CrashBuilds(lambda dropped, _: None if 1 in dropped else CrashPoint(True, "assertion"), 1)

    seen = list(provoking(PASSES, builds))

    assert isinstance(seen[-1], Provoked) and seen[-1].step == Step(1, "coalesce")
    tried = sum(isinstance(one, BuildTried) for one in seen)
    assert [one.most for one in seen if isinstance(one, Searching)] == [tried] == [3]


def test_a_crash_that_behaves_differently_when_resumed_is_searched_from_the_source() -> None:
    def die(dropped: frozenset[int], from_source: bool) -> CrashPoint | None:
        return None if (2 if from_source else 1) in dropped else CrashPoint(True, "assertion")

    seen = list(provoking(PASSES, CrashBuilds(die, 1)))

    assert sum(isinstance(one, Searching) for one in seen) == 2
    assert isinstance(seen[-1], Provoked) and seen[-1].step == Step(2, "cse")


def test_a_death_that_does_not_come_each_time_is_not_decided() -> None:
    calls = Counter[frozenset[int]]()  # from the source

    def die(dropped: frozenset[int], from_source: bool) -> CrashPoint | None:
        calls[dropped] += from_source
        survives = 1 in dropped and (not from_source or calls[dropped] == 2)
        return None if survives else CrashPoint(True, "assertion")

    *_, last = provoking(PASSES, CrashBuilds(die, 1))

    assert isinstance(last, Provoked) and last.step is None
    assert last.because.startswith("it does not always die: ")


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (["good", "good", "bad", "bad"], 1),
        (["bad", "bad", "bad", "bad"], "without all of them it dies, too"),
        (["skip", "skip", "skip", "bad"], "the build without them cannot be compared"),
        (["good", "skip", "skip", "bad"], "some builds die with another error"),
    ],
)
def test_of_llvms_passes_the_one_at_the_border_is_named_or_the_reason(
    verdicts: list[JudgeAnswer], answer: int | str
) -> None:
    steps = [Step(number, "licm") for number in (10, 11, 12)]

    *_, last = provoking_in_llvm(steps, lambda on: verdicts[on])

    assert last == (
        Provoked(LLVM, steps[answer]) if isinstance(answer, int) else Provoked(LLVM, None, answer)
    )
