"""The search that leaves out passes of a pipeline, on a hand-made compiler with one faulty pass."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracing.analyze.bisect.leave_out import Instance, LeaveOut, droppable
from tracing.analyze.bisect.search import (
    Contradiction,
    FirstBad,
    JudgeAnswer,
    Judgement,
    Undecided,
    answer_of,
)

NAMES = ("inline", "canonicalize", "cse", "coalesce", "pipeline", "convert", "lower")


@dataclass
class Compiler:
    """Passes in a row, each of which leaves its name in the IR once; a faulty one leaves a fault.

    The fault needs IR that `on` was at work on before, and stays. Without a mandatory pass there is no build.
    """

    passes: list[str]
    faulty: str = ""
    on: str | None = None
    mandatory: frozenset[str] = frozenset()
    asked: list[frozenset[int]] = field(default_factory=list)

    def compiled(self, dropped: frozenset[int] = frozenset()) -> tuple[list[set[str]], str]:
        """The IR before the first pass and after each, and why there is no build."""
        ir: set[str] = set()
        every = [set(ir)]
        for index, name in enumerate(self.passes):
            if index not in dropped:
                at_work = self.on is None or self.on in ir
                ir |= {name, *(["fault"] if name == self.faulty and at_work else [])}
            every.append(set(ir))
        missing = self.mandatory - ir
        return every, f"there is no {', '.join(sorted(missing))}" if missing else ""

    def failure(self, dropped: frozenset[int]) -> str:
        return self.compiled(dropped)[1]

    def judged(self, dropped: frozenset[int], *, anew: bool = False) -> Judgement:
        self.asked.append(dropped)
        every, failure = self.compiled(dropped)
        if failure:
            return Judgement("skip", failure)
        return Judgement("bad" if "fault" in every[-1] else "good", "exit status 1")

    def search(self) -> LeaveOut:
        every, _ = self.compiled()
        instances = [
            Instance(index, name, every[index] != every[index + 1]) for index, name in enumerate(self.passes)
        ]
        return LeaveOut("MLIR passes", instances, self, self.judged(frozenset()))


def searched(compiler: Compiler) -> FirstBad | Undecided:
    return answer_of(compiler.search().search())


def named(answer: FirstBad | Undecided) -> set[str]:
    """Every pass that the answer says may be to blame."""
    if isinstance(answer, FirstBad):
        return {answer.step.name, *(one.name for one in answer.unavoidable)}
    return {one.step.name for one in answer.suspects}


PASSES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=12)


@given(PASSES, st.data())
def test_a_faulty_pass_that_can_be_left_out_is_named_whichever_pass_makes_its_input(
    passes: list[str], data: st.DataObject
) -> None:
    faulty = data.draw(st.sampled_from(passes))
    on = data.draw(st.sampled_from([None, *passes]))
    others = [name for name in passes if name != faulty]
    mandatory = data.draw(st.frozensets(st.sampled_from(others)) if others else st.just(frozenset()))
    compiler = Compiler(passes, faulty, on, mandatory)
    if compiler.judged(frozenset()).verdict == "good":
        return

    answer = searched(compiler)

    if isinstance(answer, FirstBad):
        assert answer.step.name == faulty
    else:
        assert faulty in named(answer)


@given(PASSES, st.data())
def test_a_faulty_pass_that_cannot_be_left_out_is_among_those_that_are_named(
    passes: list[str], data: st.DataObject
) -> None:
    faulty = data.draw(st.sampled_from(passes))
    on = data.draw(st.sampled_from([None, *passes]))
    mandatory = data.draw(st.frozensets(st.sampled_from(passes))) | {faulty}
    compiler = Compiler(passes, faulty, on, mandatory)
    if compiler.judged(frozenset()).verdict == "good":
        return

    assert faulty in named(searched(compiler))


def test_all_runs_of_a_pass_are_left_out_together_those_too_that_changed_nothing() -> None:
    compiler = Compiler(["inline", "cse", "cse", "lower", "cse"], "cse", "inline")

    answer = searched(compiler)

    assert isinstance(answer, FirstBad)
    assert (answer.step.name, answer.step.index) == ("cse", 1)
    assert frozenset({1, 2, 4}) in compiler.asked


def test_passes_that_the_faulty_pass_needs_are_named_with_it() -> None:
    compiler = Compiler(
        ["inline", "coalesce", "pipeline", "lower"], "pipeline", "coalesce", frozenset({"lower"})
    )

    answer = searched(compiler)

    assert isinstance(answer, FirstBad)
    assert answer.step.name == "pipeline"
    assert [one.name for one in answer.needed] == ["coalesce"]
    assert [one.name for one in answer.unavoidable] == ["lower"]


def test_a_mandatory_pass_is_a_suspect_and_passes_without_which_the_result_is_bad_are_not() -> None:
    compiler = Compiler(["inline", "coalesce", "lower"], "lower", mandatory=frozenset({"lower"}))

    answer = searched(compiler)

    assert isinstance(answer, Undecided)
    assert [(one.step.name, one.why) for one in answer.suspects] == [
        ("lower", "without it: there is no lower")
    ]


class BadInAnotherWay(Compiler):
    """Its judge does not like what comes without one pass."""

    def judged(self, dropped: frozenset[int], *, anew: bool = False) -> Judgement:
        answer = super().judged(dropped)
        return Judgement("bad", "exit status 2") if {1} == dropped else answer


def test_a_pass_without_which_the_result_is_bad_for_another_reason_is_not_ruled_out() -> None:
    answer = searched(BadInAnotherWay(["inline", "cse", "lower"], "lower", mandatory=frozenset({"lower"})))

    assert named(answer) == {"cse", "lower"}


class Twice(Compiler):
    """Two passes have the same fault."""

    def compiled(self, dropped: frozenset[int] = frozenset()) -> tuple[list[set[str]], str]:
        every, failure = super().compiled(dropped)
        also = any(name == "cse" for index, name in enumerate(self.passes) if index not in dropped)
        every[-1] |= {"fault"} if also else set()
        return every, failure


def test_two_passes_with_one_fault_are_both_suspects() -> None:
    answer = searched(
        Twice(["coalesce", "inline", "cse", "lower"], "coalesce", mandatory=frozenset({"lower"}))
    )

    assert isinstance(answer, Undecided)
    assert {"coalesce", "cse"} <= named(answer)
    assert "inline" not in named(answer)


class Moody(Compiler):
    """A build from the source is another one than that from the middle."""

    def judged(self, dropped: frozenset[int], *, anew: bool = False) -> Judgement:
        return Judgement("bad", "exit status 1") if anew else super().judged(dropped)


def test_an_answer_that_does_not_hold_when_it_is_built_from_the_source_is_none() -> None:
    with pytest.raises(Contradiction, match=r"the build without cse \(#1\) is bad"):
        searched(Moody(["inline", "cse", "lower"], "cse"))


class Flaky(Compiler):
    """A compiler whose judge is wrong in one of eight calls; asks three times to confirm, like `Probes`."""

    def seeded(self, seed: int) -> Flaky:
        self.random, self.known = random.Random(seed), dict[frozenset[int], Judgement]()
        return self

    def judged(self, dropped: frozenset[int], *, anew: bool = False) -> Judgement:
        if anew or dropped not in self.known:
            right = super().judged(dropped)
            said = {self._said(right.verdict) for _ in range(3 if anew else 1)}
            self.known[dropped] = (
                Judgement(said.pop(), "exit status 1") if len(said) == 1 else Judgement("skip")
            )
        return self.known[dropped]

    def _said(self, verdict: str) -> JudgeAnswer:
        if verdict == "skip" or self.random.random() > 1 / 8:
            return verdict  # type: ignore[return-value]
        return "bad" if verdict == "good" else "good"


def test_a_judge_that_is_wrong_in_one_of_eight_calls_gives_no_wrong_answer() -> None:
    passes = [f"pass-{number}" for number in range(18)] + ["lower"]
    named = []
    for seed in range(300):
        compiler = Flaky(passes, "pass-7", mandatory=frozenset({"lower"})).seeded(seed)
        with suppress(Contradiction):
            answer = answer_of(compiler.search().search())
            named += [answer.step.name] if isinstance(answer, FirstBad) else []

    assert len(named) > 30
    assert set(named) == {"pass-7"}


@given(st.lists(st.booleans(), max_size=30))
def test_exactly_the_unneeded_passes_are_left_out(needed: list[bool]) -> None:
    dropped = droppable(
        range(len(needed)), lambda dropped: "no" if any(needed[step] for step in dropped) else ""
    )

    assert sorted(dropped) == [step for step, need in enumerate(needed) if not need]


def test_of_two_passes_that_only_together_can_be_left_out_both_are() -> None:
    assert droppable([3, 5], lambda dropped: "no" if dropped in ({3}, {5}) else "") == {3, 5}
