"""The events of the search over the layers of a compilation, with a hand-made compiler and judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracing.analyze.bisect.execution import Meaning
from tracing.analyze.bisect.judge import artefact
from tracing.analyze.bisect.layer_search import LayerSearch
from tracing.analyze.bisect.layers import MLIR, Bisection
from tracing.analyze.bisect.leave_out import Instance
from tracing.analyze.bisect.probes import Compiled, Probes
from tracing.analyze.bisect.search import Changed, FirstBad, Judgement, Step, Undecided
from tracing.analyze.bisect.search_events import (
    Answered,
    Executed,
    FullPipeline,
    LeftOut,
    NoAnswer,
    NotSearched,
    SearchEvent,
    Searching,
)
from tracing.analyze.bisect.snapshot_search import SnapshotSearch
from tracing.analyze.bisect.snapshots import FirstSeen, Snapshot
from tracing.errors import Problem

PASSES = ("coalesce", "pipeline", "lower")


@dataclass
class Compiler:
    """Three passes, each of which leaves its name in the IR; without a mandatory one there is no build."""

    mandatory: str = ""
    assemblers: Sequence[str] = ()

    def without(self, dropped: frozenset[int], *, afresh: bool) -> Compiled:
        left = [name for index, name in enumerate(PASSES) if index not in dropped]
        if self.mandatory and self.mandatory not in left:
            return Compiled({}, f"there is no {self.mandatory}")
        return Compiled({"ttgir": " ".join(left)})

    def limited(self, limit: int | None, disabled: Sequence[str], *, afresh: bool) -> Compiled:
        raise AssertionError("the judge does not look at LLVM")

    def assembled(self, level: int | None, assembler: str | None) -> Compiled:
        raise AssertionError("the judge does not look at a cubin")


@dataclass
class Judge:
    """Bad is TTGIR with this word in it; with `broken`, nothing can be judged."""

    word: str
    broken: bool = False
    stages: Sequence[str] = ("ttgir",)

    @property
    def key(self) -> Sequence[str]:
        return [self.word]

    def __call__(self, folder: Path) -> Judgement:
        if self.broken:
            return Judgement("skip", "exit status 125")
        bad = self.word in artefact(folder, "ttgir").read_text()
        return Judgement("bad" if bad else "good", f"exit status {int(bad)}")


def events(
    folder: Path,
    judge: Judge,
    compiler: Compiler | None = None,
    meaning: Meaning | None = None,
    languages: Sequence[str] = (),
) -> list[SearchEvent]:
    probes = Probes(folder, judge)
    instances = [Instance(index, name, changed=True) for index, name in enumerate(PASSES)]
    bisection = Bisection(instances, probes, compiler or Compiler(), ["kernel"])
    mlir = [
        Snapshot(MLIR, Step(at - 1, "source" if at == 0 else PASSES[at - 1]), "ttgir", " ".join(PASSES[:at]))
        for at in range(len(PASSES) + 1)
    ]
    snapshots = SnapshotSearch(probes, languages, mlir, None)
    search = LayerSearch(bisection, snapshots, lambda: meaning or Meaning(), ["ttir", "ttgir", "llir", "ptx"])
    return list(search.events())


def test_a_good_pipeline_ends_the_search(tmp_path: Path) -> None:
    *_, last = events(tmp_path, Judge("nothing"))

    assert isinstance(last, FullPipeline) and last.judgement.verdict == "good"


def test_the_pass_that_turns_the_result_bad_is_the_last_event(tmp_path: Path) -> None:
    seen = events(tmp_path, Judge("pipeline"))

    assert isinstance(seen[-1], Answered)
    assert isinstance(seen[-1].weighed, FirstBad) and seen[-1].weighed.step == Step(1, "pipeline")
    assert [one.layer for one in seen if isinstance(one, NotSearched)] == ["ptxas", "LLVM passes"]
    (tried,) = (one.names for one in seen if isinstance(one, LeftOut))
    assert list(tried) == list(PASSES)


def test_a_pass_that_nothing_is_built_without_is_a_suspect(tmp_path: Path) -> None:
    *_, answered, last = events(tmp_path, Judge("lower"), Compiler(mandatory="lower"))

    assert isinstance(answered, Answered) and isinstance(answered.weighed, Undecided)
    assert isinstance(last, NoAnswer)
    assert [one.step.name for one in last.suspects] == ["lower"]
    assert len(last.rest) == 1 and last.rest[0].startswith("the kernel itself")


def test_executing_the_ir_decides_between_passes_that_nothing_is_built_without(tmp_path: Path) -> None:
    meaning = Meaning((Step(2, "lower"),), "out_ptr0[0] is 0.5, and was 0.02")

    seen = events(tmp_path, Judge("lower"), Compiler(mandatory="lower"), meaning)

    assert Executed(meaning) in seen
    assert isinstance(seen[-1], Answered) and isinstance(seen[-1].weighed, Changed)
    assert isinstance(seen[-1].answer, Undecided)


def test_a_pass_is_not_cleared_by_an_execution_that_shows_no_difference(tmp_path: Path) -> None:
    meaning = Meaning(last=Step(1, "pipeline"))

    *_, answered, last = events(tmp_path, Judge("pipeline"), Compiler(mandatory="lower"), meaning)

    assert isinstance(answered, Answered) and isinstance(answered.weighed, Undecided)
    assert "differs by more than 2 % of the largest: it is to blame, or a later" in answered.weighed.because
    assert isinstance(last, NoAnswer)
    assert {one.step.name: one.why for one in last.suspects} == {
        "lower": "it reads the output of that pass",
        "pipeline": "executed on generated inputs, no value differs by more than 2 % of the largest; "
        "execution does not reveal a race, a layout, a hint, or what only other inputs show",
    }


def test_a_judge_that_reads_ir_names_the_pass_without_another_build(tmp_path: Path) -> None:
    seen = events(tmp_path, Judge("lower"), Compiler(mandatory="lower"), languages=["ttgir"])

    assert isinstance(seen[-1], Answered) and isinstance(seen[-1].weighed, FirstSeen)
    assert seen[-1].weighed.bad.snapshot.step == Step(2, "lower")
    assert [one.what for one in seen if isinstance(one, Searching)] == ["reading the IR between passes"]


def test_a_pipeline_that_cannot_be_judged_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="the full pipeline cannot be judged: exit status 125"):
        events(tmp_path, Judge("lower", broken=True))
