"""The events of the search of `tracing swap`, with simulated executions of the case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from handmade.runs import saved

from tracing.analyze.replay.swap_cache import Replacing, SwapCache
from tracing.analyze.replay.swap_plan import Candidate, SwapLaunch
from tracing.analyze.replay.swap_search import (
    EverythingReplaced,
    Goal,
    KernelsBlamed,
    Narrowing,
    NothingReplaced,
    NotReplaceable,
    SwapEvent,
    Tried,
    search,
)
from tracing.errors import Problem
from tracing.model import Outcome, Replacement, SwapResult

RIGHT, WRONG = {"output": "right"}, {"output": "wrong"}


@dataclass
class Program:
    """A case whose result is right if all kernels in `faulty` are replaced."""

    faulty: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)  # why, by kernel
    results: list[dict[str, str]] = field(default_factory=list)  # of the first executions instead

    def run(self, replaced: Replacing) -> SwapResult:
        for kernel, why in self.refused.items():
            if kernel in replaced:
                return SwapResult({}, Outcome("failed", why), kernel)
        if self.results:
            return SwapResult(self.results.pop(0), Outcome("passed", ""))
        return SwapResult(RIGHT if self.faulty <= set(replaced) else WRONG, Outcome("passed", ""))


def candidate(kernel: str) -> Candidate:
    turn = SwapLaunch(0, 0, Replacement(f"source of {kernel}", (1, 1, 1), "", (1, 1, 1)), "source")
    return Candidate(kernel, (turn,), 1)


def events(
    folder: Path, program: Program, kernels: str, launched: Mapping[str, int] | None = None
) -> list[SwapEvent]:
    cache = SwapCache(saved(folder, []), ["key"], program.run)
    seen = launched if launched is not None else dict.fromkeys(kernels, 1)
    goal = Goal(RIGHT, WRONG, close=False)
    return list(search(goal, [candidate(one) for one in kernels], cache, seen, each_launch=False))


def test_a_minimal_set_of_kernels_is_blamed_with_the_differences_without_each(tmp_path: Path) -> None:
    *_, answer = events(tmp_path, Program(frozenset("bd")), "abcde")

    assert isinstance(answer, KernelsBlamed)
    assert [one.kernel for one in answer.candidates] == ["b", "d"]
    assert (answer.without, answer.among) == ((("output differs",), ("output differs",)), 5)


def test_each_choice_is_an_event_and_none_exceeds_the_promise(tmp_path: Path) -> None:
    seen = events(tmp_path, Program(frozenset("bd")), "abcde")

    (narrowing,) = (one for one in seen if isinstance(one, Narrowing))
    assert 0 < sum(isinstance(one, Tried) for one in seen) <= narrowing.most
    assert [one.differing for one in seen if isinstance(one, NothingReplaced)] == [("output differs",)]


def test_a_kernel_that_cannot_be_replaced_is_left_out_with_the_reason(tmp_path: Path) -> None:
    seen = events(tmp_path, Program(frozenset("b"), refused={"a": "it does not compile"}), "ab")

    assert NotReplaceable("a", "it does not compile") in seen
    assert isinstance(seen[-1], KernelsBlamed) and seen[-1].among == 1


def test_a_kernel_with_another_number_of_launches_is_left_out(tmp_path: Path) -> None:
    seen = events(tmp_path, Program(frozenset("b")), "ab", launched={"a": 2, "b": 1})

    assert NotReplaceable("a", "b has 1 launch of it, and this execution made 2") in seen


def test_a_cause_outside_of_the_kernels_ends_the_search(tmp_path: Path) -> None:
    *_, last = events(tmp_path, Program(frozenset("x")), "ab")

    assert last == EverythingReplaced(2, ("output differs",))


def test_a_case_that_gives_other_results_than_b_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="gives other results: those of a"):
        events(tmp_path, Program(frozenset()), "ab")


def test_a_case_that_contradicts_itself_is_a_problem(tmp_path: Path) -> None:
    program = Program(frozenset("a"), results=[WRONG, RIGHT, WRONG])

    with pytest.raises(Problem, match="with these replaced a second time, output differs"):
        events(tmp_path, program, "a")
